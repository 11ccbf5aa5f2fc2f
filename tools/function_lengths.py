"""Finds the functions of a C++, Rust or Python source and how many lines each has.

C++ and Rust are read by their braces, with comments, literals and preprocessor lines blanked first; what opens a brace
is told by the text before it. That is no parser, but it only has to be right for sources that clang-format and rustfmt have laid out:
a body's brace has a space before it, a brace initialiser's has none.
"""

import ast
import re
from typing import NamedTuple


class Function(NamedTuple):
    name: str
    line: int  # where its signature starts, from 1
    num_lines: int  # from there to its closing brace


CPP_RAW_STRING = re.compile(r'R"([^()\\ ]{0,16})\((.*?)\)\1"', re.DOTALL)
RUST_RAW_STRING = re.compile(r'\br(#*)"(.*?)"\1', re.DOTALL)
TOKENS = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | "(?:\\.|[^"\\\n])*"
      | \b\d[\w.]*(?:'\w+)+            # digits with separators: their quotes open no literal
      | '(?:\\[^\n]{1,8}?|[^'\\\n])'   # a character; what is left of a Rust lifetime is no match and stays
    """,
    re.DOTALL | re.VERBOSE,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)


def blank(text):
    """The same lines with nothing on them."""
    return re.sub(r"[^\n]", " ", text)


def without_literals(source, is_rust=False):
    """The source with comments, literals and, in C++, preprocessor lines blanked; positions stay."""

    def replace(match):  # a literal leaves its quote, so that a brace after it still has something before it
        return blank(match.group()) if match.group()[0] == "/" else '"' + blank(match.group())[1:]

    source = (RUST_RAW_STRING if is_rust else CPP_RAW_STRING).sub(replace, source)
    source = TOKENS.sub(replace, source)
    return source if is_rust else DIRECTIVE.sub(lambda match: blank(match.group()), source)


ACCESS = re.compile(r"^\s*(?:(?:public|private|protected)\s*:\s*)+")
CONTAINER = re.compile(
    r"^(?:pub(?:\([^)]*\))?\s+|typedef\s+|inline\s+|unsafe\s+|export\s+)*"
    r"(?:namespace|extern|class|struct|union|enum|impl|trait|mod)\b"
)
NAME = re.compile(r"((?:\w+::)*(?:operator\s*(?:\(\)|[^\s(]+)|~?\w+))\s*\(")


def without_template_head(head):
    """`template <...>` and `requires` heads would hide what is declared."""
    while (match := re.match(r"\s*template\s*<", head)) is not None:
        depth, at = 1, match.end()
        while depth > 0 and at < len(head):
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
    return re.sub(r"^\s*(?:\[\[[^\]]*\]\]|#\[[^\]]*\]|\s)+", "", head)


def kind_of(head):
    """container (its members are looked at), function, or other (initialisers; not looked into)."""
    head = without_template_head(head)
    if CONTAINER.match(head) and not re.match(r"extern\s+\"\s*\"\s*[^\s{]", head):
        return "container"
    if head.rstrip().endswith("=") or ")" not in head:
        return "other"
    return "function"


def name_of(head):
    head = without_template_head(head)
    test = re.match(r"\s*(?:TYPED_|P_)?TEST(?:_[FP])?\s*\(([^)]*)\)", head)
    if test:
        return re.sub(r"\s*,\s*", ".", test.group(1).strip())
    match = NAME.search(head)
    return match.group(1) if match else head.strip()[:40]


def brace_functions(source, is_rust=False):
    text = without_literals(source, is_rust)
    found = []
    stack = []  # (kind, where the head starts, head)
    head_start = 0
    parentheses = 0  # a brace inside a parameter list is a default argument
    for at, char in enumerate(text):
        looking = all(kind == "container" for kind, _, _ in stack)
        if looking and char in "()":
            parentheses += 1 if char == "(" else -1
        if char == "{":
            # Without a space before it a brace initialises a member or a variable, and the head goes on after it.
            initialises = looking and (parentheses > 0 or not text[at - 1].isspace())
            head = text[head_start:at]
            stack.append(("initialiser" if initialises else kind_of(ACCESS.sub("", head)), head_start, head))
            if not initialises and looking:
                head_start = at + 1
        elif char == "}" and stack:
            kind, start, head = stack.pop()
            if all(outer == "container" for outer, _, _ in stack):
                if kind == "function":
                    found.append(measured(text, start, head, at))
                if kind != "initialiser":
                    head_start = at + 1
        elif char == ";" and looking and parentheses == 0:
            head_start = at + 1
    return found


def measured(text, start, head, end):
    signature = ACCESS.sub("", head).lstrip()
    first = start + len(head) - len(signature)
    line = text.count("\n", 0, first) + 1
    return Function(name_of(signature), line, text.count("\n", 0, end) + 2 - line)


def python_functions(source):
    return [
        Function(node.name, node.lineno, node.end_lineno - node.lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def functions_of(path, source):
    if path.endswith(".py"):
        return python_functions(source)
    return brace_functions(source, is_rust=path.endswith(".rs"))
