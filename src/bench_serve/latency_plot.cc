#include "bench_serve/latency_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace pagoda {

namespace {

// In pixels.
constexpr double kWidth = 900, kPanelHeight = 180, kLeft = 80, kRight = 20, kTop = 44, kGap = 40;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr int kNumTicks = 5;

struct Dot {
  double time_s, milliseconds;
};

struct Panel {
  const char* name;   // class of the dots
  const char* label;  // includes the unit
  const char* colour;
  std::vector<Dot> dots;
};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

// Returns 1, 2 or 5 times a power of ten, so that about kNumTicks of them reach `most`.
double tick_step(double most) {
  const double rough = most / kNumTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

std::string line_between(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x1, y1,
                     x2, y2);
}

std::string draw_panel(const Panel& panel, double top, double duration_s) {
  double most = 0;
  for (const Dot& dot : panel.dots) most = std::max(most, dot.milliseconds);
  if (most <= 0) most = 1;
  const double bottom = top + kPanelHeight;
  const auto x_of = [&](double time_s) { return kLeft + time_s / duration_s * kPlotWidth; };
  const auto y_of = [&](double ms) { return bottom - ms / (1.05 * most) * kPanelHeight; };
  std::string svg = text_at(kLeft, top - 8, "start", panel.label);
  for (double ms = 0; ms <= 1.05 * most; ms += tick_step(most)) {
    svg += line_between(kLeft, y_of(ms), kWidth - kRight, y_of(ms));
    svg += text_at(kLeft - 6, y_of(ms) + 4, "end", fmt::format("{:g}", ms));
  }
  for (double s = 0; s <= duration_s; s += tick_step(duration_s)) {
    svg += line_between(x_of(s), bottom, x_of(s), bottom + 4);
    svg += text_at(x_of(s), bottom + 16, "middle", fmt::format("{:g}", s));
  }
  for (const Dot& dot : panel.dots) {
    svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n",
                       panel.name, x_of(dot.time_s), y_of(dot.milliseconds), panel.colour);
  }
  return svg;
}

}  // namespace

std::string latency_plot_svg(std::span<const RequestRecord> records, const std::string& title) {
  Panel panels[] = {{"ttft", "time to first token, ms", "#1f77b4", {}},
                    {"e2el", "end-to-end latency, ms", "#2ca02c", {}},
                    {"tpot", "time per output token, ms", "#d62728", {}}};
  double duration_s = 1e-3;
  for (const RequestRecord& record : records) {
    if (!record.completed()) continue;
    duration_s = std::max(duration_s, record.end_s);
    const double ttft_s = record.first_token_s();
    const double latency_s = record.latency_s();
    panels[0].dots.push_back({record.start_s, 1e3 * ttft_s});
    panels[1].dots.push_back({record.start_s, 1e3 * latency_s});
    if (record.num_output_tokens < 2) continue;
    panels[2].dots.push_back(
        {record.start_s, 1e3 * (latency_s - ttft_s) / (record.num_output_tokens - 1)});
  }
  const double height = kTop + std::size(panels) * (kPanelHeight + kGap);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" "
      "viewBox=\"0 0 {0:g} {1:g}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<style>line {{ stroke: #ccc }} circle {{ fill-opacity: 0.6 }}</style>\n",
      kWidth, height);
  svg += text_at(kWidth / 2, 18, "middle", escaped(title));
  double top = kTop;
  for (const Panel& panel : panels) {
    svg += draw_panel(panel, top, duration_s);
    top += kPanelHeight + kGap;
  }
  svg +=
      text_at(kWidth / 2, height - 4, "middle", "start of the request, in seconds since the first");
  return svg + "</svg>\n";
}

}  // namespace pagoda
