"""Every bound in SECURITY.md's table is the one in the code, and its test is there."""

import ast
import operator
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| [^|]+ \| (\d+)( %)?[^|]* \| (?:`(--[\w-]+)` )?\| `(\w+)` in `([\w./]+)` \| `([\w.]+)` \|$")
OPERATORS = {ast.LShift: operator.lshift, ast.Mult: operator.mul, ast.Div: operator.floordiv}


def value_of(node):
    if isinstance(node, ast.Constant):
        return node.value
    return OPERATORS[type(node.op)](value_of(node.left), value_of(node.right))


def bound_in(text, name):
    """Of `kName = 4 << 20`, `kName = {.num_bytes = 4 << 20`, `double name = 0.75` and `const NAME: usize = 1_000`; None where there
    is no such constant."""
    found = re.search(rf"\b{name}(?:: \w+)? = (?:{{\.num_bytes = )?([\d_' <*.]+)", text)
    if not found:
        return None
    return value_of(ast.parse(re.sub(r"[_']", "", found[1]).strip(), mode="eval").body)


def problems():
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if " in `" in line and line.startswith("|")]
    if len(rows) < 30:
        yield f"SECURITY.md: expected a table of bounds, got {len(rows)} rows"
    flags = (ROOT / "src/cli/commands/serve_command.cc").read_text()
    for line in rows:
        row = ROW.match(line)
        if not row:
            yield f"SECURITY.md: expected '| what | default | `flag` | `constant` in `file` | `test` |', got {line}"
            continue
        bound, percent, flag, name, file, test = row.groups()
        path = ROOT / "src" / file
        actual = bound_in(path.read_text(), name) if path.exists() else None
        if actual != (int(bound) / 100 if percent else int(bound)):
            yield f"SECURITY.md: {name} in {file}: expected {actual}, got {bound}{percent or ''}"
        if flag and f'"{flag}"' not in flags:
            yield f"SECURITY.md: serve has no {flag}"
        pattern = test if test.endswith(".py") else test + ".cc"
        if not any(ROOT.glob(f"{folder}/**/{pattern}") for folder in ("src", "tests")):
            yield f"SECURITY.md: there is no test {test}"


if __name__ == "__main__":
    found_problems = list(problems())
    print("\n".join(found_problems))
    sys.exit(1 if found_problems else 0)
