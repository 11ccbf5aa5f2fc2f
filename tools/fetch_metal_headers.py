#!/usr/bin/env python3
"""Fetches the headers of MLX for Apple GPUs once into the user's cache folder, and prints their folder.

They come with PyPI's mlx-metal, whose wheel for macOS is 45 MB, of which only the headers are kept: MLX's own for Metal,
Apple's metal-cpp, and the kernels that MLX ships. tests/metal compiles what encodes our kernels against them on Linux.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE, VERSION, PLATFORM = "mlx-metal", "0.32.4", "macosx_14_0_arm64"
SHA256 = "8019b2db622599267d66cc168b2f0dbf5af929790a6c3b3913e00eabc42a7947"
INSIDE = "mlx/include/"


def folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "pagoda" / "metal_headers" / f"{PACKAGE}-{VERSION}"


def fetch(target):
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        scratch = pathlib.Path(scratch)
        wanted = scratch / "requirements.txt"
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary", ":all:", "--platform", PLATFORM, "--require-hashes", "--dest", scratch, "-r", wanted]
        subprocess.run([str(word) for word in command], check=True)
        whole = scratch / "headers"
        with zipfile.ZipFile(next(scratch.glob("*.whl"))) as archive:
            for member in archive.namelist():
                if member.startswith(INSIDE) and not member.endswith("/"):
                    path = whole / member.removeprefix(INSIDE)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(member))
        whole.rename(target)


def main():
    if not folder().is_dir():
        fetch(folder())
    print(folder())


if __name__ == "__main__":
    main()
