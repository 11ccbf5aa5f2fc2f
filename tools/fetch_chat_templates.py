#!/usr/bin/env python3
"""Fetches the chat templates of 70 models once into the user's cache folder, and prints their folder.

They come with llama.cpp's source, which PyPI's llama-cpp-python carries: 76 MB, of which only models/templates is kept.
They are other people's, so they are no part of this project. src/text/jinja_goldens_test.cc renders them.
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
INSIDE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/models/templates/"


def folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "pagoda" / "chat_templates" / f"{PACKAGE}-{VERSION}"


def fetch(target):
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        scratch = pathlib.Path(scratch)
        wanted = scratch / "requirements.txt"
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--no-binary", PACKAGE, "--require-hashes", "--dest", scratch, "-r", wanted]
        subprocess.run([str(word) for word in command], check=True)
        whole = scratch / "templates"
        whole.mkdir()
        with tarfile.open(next(scratch.glob("*.tar.gz"))) as archive:
            for member in archive:
                if member.isfile() and member.name.startswith(INSIDE) and member.name.endswith(".jinja"):
                    (whole / pathlib.Path(member.name).name).write_bytes(archive.extractfile(member).read())
        whole.rename(target)


def main():
    if not folder().is_dir():
        fetch(folder())
    print(folder())


if __name__ == "__main__":
    main()
