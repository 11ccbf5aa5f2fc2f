"""Who may include whom: by folder, by room of a folder, and other people's headers by source. Part of tools/check_layers.py."""

import re
from typing import NamedTuple

# The folders that each folder may include besides itself, as docs/ARCHITECTURE.md's code map has them: each names what stands below
# it and what it needs of that, no more. check_code_map() holds the two to one another.
MAY_INCLUDE = {
    "core": "",
    "draw": "core",
    "tensor": "core",
    "quant": "core",
    "batch": "core tensor",
    "backend": "core tensor quant",
    "ops": "core draw tensor quant batch backend",
    "weights": "core quant",
    "kv": "core tensor batch",
    "sampling": "core draw tensor backend ops",
    "model": "core tensor quant batch backend ops weights kv sampling",
    "engine": "core draw tensor quant batch backend ops weights kv sampling model",
    "text": "core",
    "answer": "core text",
    "hub": "core",
    "serving": "core weights sampling model engine text answer",
    "convert": "core quant weights model text serving",
    "server": "core kv sampling model engine text answer serving",
    "bench_serve": "core",
    "cli": "core tensor quant batch backend ops weights kv sampling model engine text answer hub serving convert server bench_serve",
}
MAY_INCLUDE = {folder: frozenset(others.split()) for folder, others in MAY_INCLUDE.items()}

# The rooms of large folders, and what each may include besides itself. Files beside the rooms may include all of them, and rooms
# include none of those; tests include what they test with.
DIALECT = "base fields generation chat"
ROOMS = {
    "cli": {
        "base": "",
        "flags": "base",
        "outline": "base flags",
        "bench": "base flags",
        "commands": "base flags outline bench",
    },
    "server": {
        "base": "",
        "http": "base",
        "page": "base fields generation",
        "fields": "base",
        "generation": "base fields",
        "pooling": "base fields generation",
        "chat": "base fields generation",
        "openai": DIALECT,
        "responses": DIALECT,
        "anthropic": DIALECT,
        "ollama": DIALECT + " pooling",
        "llama_cpp": DIALECT + " pooling",
        "information": DIALECT,
    },
}

# Bookkeeping runs in tests with a fake runner and a fake clock, so it knows nothing of devices and tensors: these files
# include core and one another.
BOOKKEEPING_FILES = (
    r"(?:engine/(?:scheduler(?:_outcomes)?|sequence|request|plan|step_cost|step_shares|waiting_queue)|kv/(?:block_pool|block_tables|block_tier|cache_events|cache_groups|longest_hit|prefix_cache(?:_nodes)?|prefix_scope)|sampling/sampling_(?:fields|params))"
)
BOOKKEEPING = re.compile(rf"^src/{BOOKKEEPING_FILES}\.(?:h|cc)$")
BOOKKEEPING_MAY_INCLUDE = re.compile(rf"^(?:core/.*|{BOOKKEEPING_FILES}\.h)$")

# Other people's headers, and the sources that may know them.
OUTSIDE = (
    (r"boost/", r"^src/(?:server|bench_serve)/"),
    (r"nlohmann/", r"^src/(?:core/(?:ordered_)?json\.(?:cc|h)$|(?:weights|model|text|answer|hub|convert|serving|server|bench_serve|cli)/)"),
    (r"prometheus/", r"^src/server/"),
    (r"CLI/", r"^src/cli/"),
    (r"curl/", r"^src/(hub/|server/trace_exporter\.cc$)"),
    (r"openssl/", r"^src/(?:core|hub|server|bench_serve|cli)/"),
    (r"hwy/", r"^src/(?:ops/\w+/(?:\w+/)?\w+(?:_cpu\w*|_portable|-inl)|(?:backend/cpu|draw|quant|sampling|cli)/.*)\.(?:cc|h)$"),
    (r"mlx/", r"^src/(?:ops/\w+/\w+_mlx_test|backend/mlx/.*)\.(?:cc|h)$"),
    (r"(?:cuda|cublas|nccl)", r"^src/backend/cuda/.*\.(?:cc|h)$"),
)

# A page of src/model, llama.cc and its like, defines one family or several.
FAMILY_PAGE = re.compile(r"^const Family k\w+ = \{", re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


class Finding(NamedTuple):
    path: str
    line: int
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}"


def line_at(source, position):
    return source.count("\n", 0, position) + 1

def check_include_layers(path, source):
    """Our own headers: by folder, and the narrower rule for bookkeeping."""
    parts = path.split("/")
    if parts[0] != "src" or len(parts) < 3:
        return
    folder = parts[1]
    if folder not in MAY_INCLUDE:
        yield Finding(path, 1, f"folder src/{folder} has no layer: expected one of {', '.join(MAY_INCLUDE)}")
        return
    for match in INCLUDE.finditer(source):
        target = match.group(2)
        other = target.split("/")[0]
        if match.group(1) == "<" or other not in MAY_INCLUDE:
            continue
        if other != folder and other not in MAY_INCLUDE[folder]:
            yield Finding(path, line_at(source, match.start()), f"{folder} may not include {target}")
        elif BOOKKEEPING.match(path) and not BOOKKEEPING_MAY_INCLUDE.match(target):
            yield Finding(path, line_at(source, match.start()), f"bookkeeping may not include {target}")


def check_rooms(path, source):
    """Our own headers within a folder that has rooms."""
    parts = path.split("/")
    if parts[0] != "src" or parts[1] not in ROOMS or len(parts) != 4 or path.endswith("_test.cc"):
        return
    folder, room = parts[1:3]
    if room not in ROOMS[folder]:
        yield Finding(path, 1, f"src/{folder}/{room} is no room: expected one of {', '.join(ROOMS[folder])}")
        return
    for match in INCLUDE.finditer(source):
        target = match.group(2).split("/")
        if match.group(1) == "<" or target[0] != folder:
            continue
        other = target[1] if len(target) == 3 else ""
        if other != room and other not in ROOMS[folder][room].split():
            yield Finding(path, line_at(source, match.start()), f"src/{folder}/{room} may not include {match.group(2)}")


def check_family_names(path, source):
    """Families by name: a page defines one, family.cc lists them, and tests may ask for one."""
    if not path.startswith("src/") or path.endswith("_test.cc") or path == "src/model/family.cc" or FAMILY_PAGE.search(source):
        return
    for match in INCLUDE.finditer(source):
        if match.group(2) == "model/families/family_pages.h":
            yield Finding(path, line_at(source, match.start()), "a family's name is known to its page and to family.cc alone")


def check_outside_includes(path, source):
    if not path.startswith("src/"):
        return
    for match in INCLUDE.finditer(source):
        for header, allowed in OUTSIDE:
            is_outside = match.group(1) == "<" or not match.group(2).startswith(tuple(f"{name}/" for name in MAY_INCLUDE))
            if is_outside and re.match(header, match.group(2)) and not re.match(allowed, path):
                yield Finding(path, line_at(source, match.start()), f"{match.group(2)} is not for this file")


def check_include_form(path, source):
    """Includes of ours are written from src/ or from the project's root."""
    for match in INCLUDE.finditer(source):
        if match.group(1) == '"' and ("../" in match.group(2) or "/" not in match.group(2)):
            yield Finding(path, line_at(source, match.start()), f'expected a path from src/, got "{match.group(2)}"')


RULES = (check_include_layers, check_rooms, check_family_names, check_outside_includes, check_include_form)
