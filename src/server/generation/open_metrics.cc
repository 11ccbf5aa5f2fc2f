#include "server/generation/open_metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string_view>

#include "core/check.h"

namespace pagoda {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view kTotal = "_total";

// Writes a number with a point or an exponent, as the format's canonical bounds of buckets have.
std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string escaped(std::string_view text) {
  std::string written;
  for (const char c : text) {
    if (c == '\\' || c == '"') written += '\\';
    written += c == '\n' ? "\\n" : std::string(1, c);
  }
  return written;
}

class Writer {
 public:
  void begin(const MetricFamily& family, std::string_view name, std::string_view type) {
    fmt::format_to(std::back_inserter(text_), "# TYPE {0} {1}\n# HELP {0} {2}\n", name, type,
                   escaped(family.help));
  }
  // Writes a sample. bound: of a bucket; empty: none.
  void sample(std::string_view name, const ClientMetric& metric, double value,
              std::string_view bound = {}) {
    text_ += name;
    char separator = '{';
    const auto label = [&](std::string_view key, std::string_view text) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", separator, key, escaped(text));
      separator = ',';
    };
    for (const ClientMetric::Label& each : metric.label) label(each.name, each.value);
    if (!bound.empty()) label("le", bound);
    if (separator == ',') text_ += '}';
    fmt::format_to(std::back_inserter(text_), " {}\n", number(value));
  }
  void histogram(const std::string& name, const ClientMetric& metric) {
    const ClientMetric::Histogram& histogram = metric.histogram;
    const auto count = static_cast<double>(histogram.sample_count);
    bool is_whole = false;
    for (const ClientMetric::Bucket& bucket : histogram.bucket) {
      is_whole = std::isinf(bucket.upper_bound);
      sample(name + "_bucket", metric, static_cast<double>(bucket.cumulative_count),
             number(bucket.upper_bound));
    }
    if (!is_whole) sample(name + "_bucket", metric, count, "+Inf");
    sample(name + "_count", metric, count);
    sample(name + "_sum", metric, histogram.sample_sum);
  }
  std::string finish() && {
    text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  std::string text_;
};

}  // namespace

std::string open_metrics_text(const std::vector<MetricFamily>& families) {
  Writer writer;
  for (const MetricFamily& family : families) {
    if (family.type == MetricType::Counter) {
      PAGODA_CHECK(family.name.ends_with(kTotal), "[metrics] a counter's name has no _total");
      writer.begin(family,
                   std::string_view(family.name).substr(0, family.name.size() - kTotal.size()),
                   "counter");
      for (const ClientMetric& each : family.metric)
        writer.sample(family.name, each, each.counter.value);
    } else if (family.type == MetricType::Histogram) {
      writer.begin(family, family.name, "histogram");
      for (const ClientMetric& each : family.metric) writer.histogram(family.name, each);
    } else {
      writer.begin(family, family.name, "gauge");
      for (const ClientMetric& each : family.metric)
        writer.sample(family.name, each, each.gauge.value);
    }
  }
  return std::move(writer).finish();
}

}  // namespace pagoda
