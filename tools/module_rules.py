"""Modules of a Rust crate use one another in one direction. Part of tools/check_layers.py."""

import collections
import graphlib
import re

from function_lengths import without_literals
from include_rules import Finding, line_at

SOURCE = re.compile(r"^(.+)/src/((?:\w+/)*\w+)\.rs$")
# The last part of a crate's or a folder's own file.
OWN_FILES = ("lib", "main", "mod")
INLINE_MODULE = re.compile(r"\bmod\s+(\w+)\s*\{")
RENAMED = re.compile(r"\bas\s+\w+")
PATH_START = re.compile(r"(?<![\w:.])(\w+)\s*(?=::)")
TOKEN = re.compile(r"\s*(::|\w+|[{},*])")


def module_of(path):
    """The crate of a source and the names of its module there, none for the crate's own; None for other files."""
    found = SOURCE.match(path)
    if not found:
        return None
    names = tuple(found[2].split("/"))
    return found[1], names[:-1] if names[-1] in OWN_FILES else names


def read_paths(source, place):
    """The paths that stand behind one's beginning, and where they end: of `::a::{b, c::d}` a, b and a, c, d."""
    paths = []
    separator = TOKEN.match(source, place)
    if not separator or separator[1] != "::":
        return [()], place
    name = TOKEN.match(source, separator.end())
    if not name or name[1] in ("::", "}", ",", "*"):
        return [()], separator.end()
    place = name.end()
    if name[1] != "{":
        rest, place = read_paths(source, place)
        return [(name[1], *names) for names in rest], place
    while (token := TOKEN.match(source, place)) and token[1] != "}":
        place = token.end()
        if re.match(r"\w", token[1]):
            rest, place = read_paths(source, place)
            paths += [(token[1], *names) for names in rest]
    return paths, token.end() if token else place


def inline_modules(source):
    """Names of modules that stand in braces, each with where it begins and ends."""
    for found in INLINE_MODULE.finditer(source):
        place, depth = found.end(), 1
        while depth and place < len(source):
            depth += {"{": 1, "}": -1}.get(source[place], 0)
            place += 1
        yield found[1], found.end(), place


def modules_used(module, source, modules):
    """The other modules of the crate that a module's source names, each with where it first does."""
    source = RENAMED.sub(lambda found: " " * len(found[0]), without_literals(source, is_rust=True))
    inline = list(inline_modules(source))
    used = {}
    for start in PATH_START.finditer(source):
        here = module + tuple(name for name, begin, end in inline if begin <= start.start() < end)
        if start[1] not in ("crate", "self", "super") and (*here, start[1]) not in modules:
            continue
        for names in read_paths(source, start.end())[0]:
            target = here
            for name in (start[1], *names):
                outer = {"crate": (), "self": target, "super": target[:-1]}
                target = outer.get(name, (*target, name))
            while target and target not in modules:
                target = target[:-1]
            if target != module and target in modules:
                used.setdefault(target, start.start())
    return used


def check_circles(sources):
    """One finding for each crate that has a circle; `sources` has all texts of files by their paths."""
    crates = collections.defaultdict(dict)
    for path in sources:
        if place := module_of(path):
            crates[place[0]][place[1]] = path
    for modules in crates.values():
        used = {module: modules_used(module, sources[path], modules) for module, path in modules.items()}
        try:
            graphlib.TopologicalSorter(used).prepare()
        except graphlib.CycleError as error:
            circle = error.args[1][::-1]
            names = " -> ".join("::".join(module) or "crate" for module in circle)
            path = modules[circle[0]]
            yield Finding(path, line_at(sources[path], used[circle[0]][circle[1]]), f"modules use one another in a circle: {names}")
