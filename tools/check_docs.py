"""What documents say is there, is there: the paths that they and comments name, and the lists that they share with the code.

The lists are of flags, metrics and sampling fields; --write brings the last up to date.
"""

import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIELD = re.compile(r"\{\.name = \"(\w+)\",(.*?)\}(?=,\n|\};)", re.DOTALL)
GENERATED = re.compile(r"(<!-- sampling fields[^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


# A path begins with one of these folders, or in documents with any where a source file's suffix says what is meant.
SOURCE_FOLDERS = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
FOLDERS = SOURCE_FOLDERS | {"src", "tests", "tools", "bench", "docs", "cmake", "packaging", ".ci", ".github"}
SOURCE_SUFFIX = re.compile(r"\.(?:cc|cmake|h|html|in|js|md|metal|py|rs|sh|ya?ml)$")
MEDIA_TYPES = {"text/event-stream", "text/html", "text/plain"}
QUOTED = re.compile(r"`([^`\n]+)`")
COMMENT = re.compile(r"(?:^|.*?\s)(?://[/!]?|#) (.*)")
# Two names or more with slashes between them, or a name and a slash; no part of a longer path, of an address or a flag.
COMMENT_PATH = re.compile(r"(?<![\w/.<\"-])((?:\w+/)+[\w.-]*\w|[a-z_]\w*/)(?!\w)")
OTHERS = {"third_party", "node_modules", "testdata", "corpus", "data", "target", "__pycache__"}


def is_there(path, folder):
    """Whether a path from the root, from src/ or from `folder` names something: NAME stands for any word, and a suffix may be left out."""
    pattern = re.sub(r"NAME", "*", path.split("#")[0].rstrip("/"))
    return any(next(base.glob(pattern + end), None) for base in (ROOT, ROOT / "src", folder) for end in ("", ".*"))


def document_paths(line):
    for word in itertools.chain.from_iterable(map(str.split, QUOTED.findall(line))):
        is_ours = word.split("/")[0] in FOLDERS or SOURCE_SUFFIX.search(word)
        if "/" in word and is_ours and not re.match(r"[/~<$]|\w+:|build/", word):
            yield word


def comment_paths(line):
    comment = COMMENT.match(line)
    for word in COMMENT_PATH.findall(comment[1]) if comment and not line.lstrip().startswith("#include") else ():
        if word.split("/")[0] in FOLDERS:
            yield word


def files(folders, suffixes):
    for folder in folders:
        found = (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in suffixes)
        yield from (path for path in found if not OTHERS & set(path.relative_to(ROOT).parts))


def missing_paths(path, text, paths_in):
    """One line for each path of a text that names nothing."""
    for number, line in enumerate(text.splitlines(), start=1):
        for named in paths_in(line):
            if named not in MEDIA_TYPES and not is_there(named, path.parent):
                yield f"{path.relative_to(ROOT)}:{number}: {named} is not there"


def path_problems():
    for path in [*sorted(ROOT.glob("*.md")), *files(("docs", "src", "tests", "bench", "packaging"), (".md",))]:
        yield from missing_paths(path, path.read_text(), document_paths)
    sources = (".h", ".cc", ".cu", ".py", ".rs", ".cmake", ".metal", ".sh", ".txt", ".js")
    for path in files(("src", "tests", "tools", "bench", "cmake"), sources):
        yield from missing_paths(path, path.read_text(), comment_paths)


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


def list_problems():
    page = read("docs/serving.md")
    flags = set()
    for source in ("src/cli/flags/engine_flags.cc", "src/cli/flags/kv_format_flags.cc", "src/cli/commands/serve_command.cc"):
        for names in re.findall(r"add_(?:option|flag|flag_callback)\(\s*\"(--[^\"]+)\"", read(source)):
            flags.update(re.findall(r"--[\w-]+", names))
    table = page[page.index("## Flags") : page.index("## Who may ask")]
    yield from differences("flag", "docs/serving.md", set(re.findall(r"`(--[\w-]+)`", table)), flags)
    code = read("src/server/generation/metrics.cc")
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
    found_problems = [*list_problems(), *path_problems()]
    print("\n".join(found_problems))
    sys.exit(1 if found_problems else 0)
