"""Where the ELF files of a folder look for libraries, besides where the system keeps its own."""

import re
import subprocess


def elf_files(folder):
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and file.suffix not in (".o", ".a"):
            with file.open("rb") as head:
                if head.read(4) == b"\x7fELF":
                    yield file


def library_paths(folder):
    """The entries of RPATH and RUNPATH, by file. An empty one is the current folder."""
    files = list(elf_files(folder))
    assert files
    told = subprocess.run(["readelf", "--wide", "--dynamic", *files, files[0]], capture_output=True, text=True, check=True).stdout
    _, *parts = re.split(r"^File: ", told, flags=re.MULTILINE)  # readelf names a file where it reads several
    lists = {part.splitlines()[0]: re.findall(r"\(R(?:UN)?PATH\) .*: \[(.*)\]$", part, re.MULTILINE) for part in parts}
    return {file: [entry for line in lines for entry in line.split(":")] for file, lines in lists.items()}


def check_library_paths(folder):
    """Each entry is relative to the file that has it, so that nobody's current folder is among them."""
    paths = library_paths(folder)
    assert any(paths.values())
    elsewhere = {file: entries for file, entries in paths.items()
                 if not all(re.fullmatch(r"\$ORIGIN(/[^$]+)?", entry) for entry in entries)}
    assert elsewhere == {}, elsewhere
