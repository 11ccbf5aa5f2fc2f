#!/usr/bin/env python3
"""Fetches llama.cpp's source and OpenVINO's wheels for tools/bundle.sh, and prints where each is, a line each.

  bench/fetch_peers.py PYTHON     PYTHON, as in 3.12, is the version that the bundle's machine has
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llama_cpp  # noqa: E402
import open_vino  # noqa: E402
from comparison import PeerError, default_folder  # noqa: E402


def main():
    if len(sys.argv) != 2:
        sys.exit("fetch_peers: expected a version of Python, as in 3.12")
    folder = default_folder()
    of_python = folder / f"python-{sys.argv[1]}"
    of_python.mkdir(parents=True, exist_ok=True)
    try:
        llama_cpp.fetch_source(folder)
        packages = open_vino.fetch(of_python, sys.argv[1])
    except (PeerError, OSError) as error:
        sys.exit(f"fetch_peers: {error}")
    print(folder, packages, sep="\n")


if __name__ == "__main__":
    main()
