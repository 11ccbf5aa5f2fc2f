"""How comments are written: how they begin, how long their sentences are, which words they do without. Part of tools/check_layers.py.

They are for a stranger, who reads each once. A block of comment lines is prose but for its indented lines, which are tables and
formulas, and for the points of its lists, each of which is a text of its own.
"""

import itertools
import re

from include_rules import Finding

MAX_SENTENCE_WORDS = 25

SOURCES = (".h", ".cc", ".cu", ".cuh", ".metal", ".rs")
COMMENT = re.compile(r"\s*//[/!]?(?: (.*)|$)")
TRAILING = re.compile(r"\S.*?[;,{})\]] *// (.*)$")
COMMENT_TEXT = re.compile(r"\s*//( +)(\S.*)")  # its indentation and its text
# How no comment begins: with what is said of something that is not named yet.
FRAGMENT = re.compile(r"(Of|What|That|Who|Whom|Whose|Which|Whoever)\b")
# The words of riddles: the text names who does a thing.
RIDDLE = re.compile(r"\b(nobody|somebody|anybody|whoever)\b", re.IGNORECASE)
# Words for what the field has a name for, in names and comments alike, and that name.
FIELD_WORDS = {
    re.compile(r"(?<![a-z])settl(e[sd]?|ing)(?![a-z])", re.IGNORECASE): "resolve",
    re.compile(r"(?<![a-z])takes?_turns(?![a-z])", re.IGNORECASE): "interleave",
    re.compile(r"unturned", re.IGNORECASE): "unrotated",
    re.compile(r"(?<![a-z])landed(?![a-z])", re.IGNORECASE): "completed",
}
# A function's comment begins with its verb; a constructor's may say at once what it requires.
VERB = re.compile(r"(?:[A-Z][a-z]+s|REQUIRES:|NOLINTNEXTLINE)(?![\w-])")
FUNCTION = re.compile(r"\s*(?!struct |class |enum |using |namespace |#|std::function<|\})[\w\[][^;={]*\(")
# A function of a source, not one of a class in it; tests tell what they show.
DEFINITION = re.compile(r"(?!TEST|TYPED_TEST|INSTANTIATE|RC_GTEST|PAGODA_|HWY_BEFORE|\s).*[^;]$")
SENTENCE_END = re.compile(r"(?<=[.:;?!])\s+|\n")


def blocks_of(lines):
    """Each block of comment lines: the index of its first line, and of the line behind it."""
    first = None
    for i, line in enumerate([*lines, ""]):
        if COMMENT.match(line):
            first = i if first is None else first
        elif first is not None:
            yield first, i
            first = None


def texts_of(lines):
    """Each comment: the index of its first line, and its lines."""
    for first, behind in blocks_of(lines):
        yield first, [COMMENT.match(line)[1] or "" for line in lines[first:behind]]
    for i, line in enumerate(lines):
        if not COMMENT.match(line) and "://" not in line and (trailing := TRAILING.match(line.strip())):
            yield i, [trailing[1]]


def sentences_of(comment):
    """The sentences of a comment's lines."""
    prose = ""
    for line in comment:
        is_apart = not line.strip() or line.startswith("  ") or line.lstrip().startswith(("- ", "|", "@"))
        prose += ("\n" if is_apart else " ") + ("" if line.startswith("  ") else line)
    return SENTENCE_END.split(prose)


def check_words(path, source):
    if not path.endswith(SOURCES):
        return
    for first, comment in texts_of(source.splitlines()):
        if fragment := FRAGMENT.match(comment[0]):
            yield Finding(path, first + 1, f'a comment begins with a noun or a verb, got "{fragment[1]}"')
        if riddle := RIDDLE.search(" ".join(comment)):
            yield Finding(path, first + 1, f'a comment says who does a thing, got "{riddle[1]}"')
        for sentence in sentences_of(comment):
            if (num_words := len(sentence.split())) > MAX_SENTENCE_WORDS:
                message = f"a sentence has {MAX_SENTENCE_WORDS} words at most, got {num_words}: {sentence.strip()[:40]}"
                yield Finding(path, first + 1, message)


def check_field_words(path, source):
    if not path.endswith(SOURCES):
        return
    for number, line in enumerate(source.splitlines(), start=1):
        for own, word in FIELD_WORDS.items():
            if found := own.search(line):
                yield Finding(path, number, f'expected the field\'s word, "{word}", got "{found[0]}"')


def check_verbs(path, source):
    """A function is told by its verb."""
    if not path.endswith((".h", ".cc")):
        return
    lines = source.splitlines()
    for first, behind in blocks_of(lines):
        text = COMMENT.match(lines[first])[1] or ""
        declaration = next((line for line in lines[behind:] if not line.lstrip().startswith("template")), "")
        is_function = FUNCTION.match(declaration) and (path.endswith(".h") or DEFINITION.match(declaration))
        if is_function and not VERB.match(text):
            yield Finding(path, first + 1, f'a function\'s comment begins with a verb ("Returns"), got "{text[:30]}"')


def torn_points(lines):
    """Numbers of the lines that stand left of their point's text, with more of the text behind them: a reflow's trace."""
    point = None  # where the point's dash stands
    for number, (line, after) in enumerate(itertools.pairwise([*lines, ""]), start=1):
        text, behind = COMMENT_TEXT.match(line), COMMENT_TEXT.match(after)
        if not text:
            point = None
        elif text[2].startswith("- "):
            point = len(text[1])
        elif point is not None and len(text[1]) <= point:
            if behind and len(behind[1]) > point and not behind[2].startswith("- "):
                yield number
            point = None


def check_points(path, source):
    for number in torn_points(source.splitlines()):
        yield Finding(path, number, "a line of a list's point stands left of its text")


CPP_RULES = (check_verbs, check_points)
RULES = (check_words, check_field_words)
