"""The lists that documents share with the code are the code's: flags, metrics, sampling fields. --write brings the last up to date."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIELD = re.compile(r"\{\.name = \"(\w+)\",(.*?)\}(?=,\n|\};)", re.DOTALL)
GENERATED = re.compile(r"(<!-- sampling fields[^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def read(path):
    return (ROOT / path).read_text()


def quoted(text, key):
    """Of `.key = "a" "b"` ab; nothing where there is no such key."""
    found = re.search(rf"\.{key} = ((?:\s*\"[^\"]*\")+)", text)
    return "".join(re.findall(r'"([^"]*)"', found[1])) if found else ""


def sampling_table():
    lines = ["| field | | from | checkpoint |", "|---|---|---|---|"]
    for name, rest in FIELD.findall(read("src/sampling/sampling_fields.h")):
        alias = quoted(rest, "alias")
        names = f"`{name}`" + (f", `{alias}`" if alias else "")
        of_checkpoint = "yes" if ".partial = " in rest else ""
        lines.append(f"| {names} | {quoted(rest, 'help')} | {quoted(rest, 'from') or 'OpenAI'} | {of_checkpoint} |")
    return "\n".join(lines) + "\n"


def differences(what, page, of_page, of_code):
    for name in sorted(of_code - of_page):
        yield f"{page}: {what} {name} is missing"
    for name in sorted(of_page - of_code):
        yield f"{page}: {what} {name} is not in the code"


def problems():
    page = read("docs/serving.md")
    flags = set()
    for source in ("src/cli/engine_flags.cc", "src/cli/kv_format_flags.cc", "src/cli/serve_command.cc"):
        for names in re.findall(r"add_(?:option|flag)\(\s*\"(--[^\"]+)\"", read(source)):
            flags.update(re.findall(r"--[\w-]+", names))
    table = page[page.index("## Flags") : page.index("## Who may ask")]
    yield from differences("flag", "docs/serving.md", set(re.findall(r"`(--[\w-]+)`", table)), flags)
    code = read("src/server/metrics.cc")
    metrics = set(re.findall(r"(?:list\.gauge|list\.info|list\.counter|histogram)\(\s*\"(\w+)\"|\"pagoda:(\w+)\"", code))
    metrics = {plain or prefixed for plain, prefixed in metrics}
    listed = set(re.findall(r"^\| `(\w+)`", page[page.index("## Metrics") :], re.MULTILINE))
    yield from differences("metric", "docs/serving.md", listed, metrics)
    if GENERATED.search(read("docs/api.md"))[2] != sampling_table():
        yield "docs/api.md: sampling fields differ from src/sampling/sampling_fields.h: run tools/check_docs.py --write"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        path = ROOT / "docs/api.md"
        path.write_text(GENERATED.sub(lambda found: found[1] + sampling_table() + found[3], path.read_text()))
    found_problems = list(problems())
    print("\n".join(found_problems))
    sys.exit(1 if found_problems else 0)
