"""No binary of the build takes a library from the current folder."""

import os
import pathlib

from library_paths import check_library_paths


def test_every_binary_names_folders_beside_itself_alone():
    check_library_paths(pathlib.Path(os.environ["PAGODA_BINARY"]).parent)
