#!/usr/bin/env python3
"""What check_docs.py takes for a path, and which of them it finds to be missing."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_docs  # noqa: E402


def missing(text, paths_in):
    file = check_docs.ROOT / "tools" / "sample"
    return list(check_docs.missing_paths(file, text, paths_in))


class Documents(unittest.TestCase):
    def test_paths_that_are_there(self):
        for path in ("src/engine/scheduler.cc", "engine/scheduler", "tools/", "tests/fuzz/NAME_fuzz.cc", "ops/*/*.metal",
                     "docs/kv_cache.md#blocks", "tools/check_docs.py --write", "check_docs.py"):
            with self.subTest(path=path):
                self.assertEqual(missing(f"see `{path}`", check_docs.document_paths), [])

    def test_paths_that_are_not(self):
        for path in ("src/engine/schedule.cc", "engine/Scheduler", "ops/swiglu/", "amx/group_numbers-inl.h", "tests/fuzz/NAME_fuzz.py"):
            with self.subTest(path=path):
                self.assertEqual(missing(f"a line\nsee `{path}`", check_docs.document_paths), [f"tools/sample:2: {path} is not there"])

    def test_words_that_are_no_paths(self):
        for word in ("/v1/chat/completions", "text/event-stream", "~/.cache/pagoda/x.json", "build/release/pagoda.h", "application/json",
                     "https://a.b/c.html", "input/output"):
            with self.subTest(word=word):
                self.assertEqual(missing(f"`{word}`", check_docs.document_paths), [])


class Comments(unittest.TestCase):
    def test_paths_are_of_comments_alone(self):
        path = "ops/nothing/nothing.h"
        for before in ("// Holds to ", "int x;  // as in ", "# ", "//! "):
            with self.subTest(before=before):
                self.assertEqual(missing(before + path, check_docs.comment_paths), [f"tools/sample:1: {path} is not there"])
        for line in (f'#include "{path}"', f'x = "{path}"', "// ops/linear/linear.h", "// a/b", "// an input/output"):
            with self.subTest(line=line):
                self.assertEqual(missing(line, check_docs.comment_paths), [])


if __name__ == "__main__":
    unittest.main()
