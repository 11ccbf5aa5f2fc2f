"""What can be read off a .metal file's text: its kernels and their arguments."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNEL = re.compile(r"(?:template\s*<(?P<parameters>[^{};()]*)>\s*)?\[\[kernel\]\]\s*(?P<attributes>(?:\[\[[^\]]*\]\]\s*)*)"
                    r"void\s+(?P<name>\w+)\s*\(")


class Kernel(NamedTuple):
    name: str
    parameters: list  # of its template, as written: "typename T"; empty: no template
    arguments: list  # as written, in one line each
    start: int  # of its declaration in the text without comments
    end: int  # of its arguments' closing parenthesis

    @property
    def is_template(self):
        return bool(self.parameters)


def metal_files():
    return sorted((ROOT / "src").rglob("*.metal"))


def without_comments(text):
    """The text, with comments as blanks, so that lines and columns stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.DOTALL)


def split_outside(text, opening="([<{", closing=")]>}"):
    """The parts between commas that stand in no brackets."""
    parts, depth, part = [], 0, ""
    for character in text:
        depth += (character in opening) - (character in closing)
        if character == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += character
    return [" ".join(part.split()) for part in [*parts, part] if part.strip()]


def matching_parenthesis(text, opening):
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise ValueError("an argument list has no end")


def kernels_in(text):
    """The kernels that a text without comments defines."""
    kernels = []
    for match in KERNEL.finditer(text):
        opening = match.end() - 1
        end = matching_parenthesis(text, opening)
        parameters = split_outside(match["parameters"] or "")
        kernels.append(Kernel(match["name"], parameters, split_outside(text[opening + 1:end]), match.start(), end))
    return kernels
