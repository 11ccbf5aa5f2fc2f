#!/usr/bin/env python3
"""Circles among the modules of Rust crates that module_rules.py finds, and what it takes for none."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import module_rules  # noqa: E402


class RustModules(unittest.TestCase):
    def circles(self, **sources):
        paths = {f"src/a/src/{name.replace('__', '/')}.rs": source for name, source in sources.items()}
        return [f"{finding.path}:{finding.line} {finding.message.split(': ')[1]}" for finding in module_rules.check_circles(paths)]

    def test_they_use_one_another_in_one_direction(self):
        self.assertEqual(self.circles(lib="mod a;\nmod b;\npub use a::A;\n", a="use crate::b::B;\n", b="struct B;\n"), [])
        self.assertEqual(self.circles(a="// Of b.\nuse crate::b::B;\n", b="use crate::a;\n"), ["src/a/src/a.rs:2 a -> b -> a"])

    def test_however_the_others_are_named(self):
        for use in ("use crate::{c, a::{self, A}};", "fn f() { crate::a::f() }", "use super::a as other;", "use crate::c::{C, d::D}; use crate::a;"):
            self.assertEqual(self.circles(a="use crate::b;", b=use, c=""), ["src/a/src/a.rs:1 a -> b -> a"], use)
        self.assertEqual(self.circles(lib="mod a;\nuse a::A;\nstruct B;\n", a="use crate::B;\n"), ["src/a/src/lib.rs:2 crate -> a -> crate"])
        self.assertEqual(self.circles(a__mod="use self::b::B;", a__b="use super::A;"), ["src/a/src/a/mod.rs:1 a -> a::b -> a"])

    def test_what_is_no_use_of_another(self):
        for use in ("// crate::a", 'const A: &str = "crate::a";', "mod inner { use super::B; }", "use other::a::A;", "use crate::c::a;"):
            self.assertEqual(self.circles(lib="mod b;\nuse b::B;\n", a="use crate::b;", b=use, c=""), [], use)
        paths = {"src/a/src/lib.rs": "", "src/a/src/b.rs": "use crate::c;", "src/d/src/lib.rs": "", "src/d/src/c.rs": "use crate::b;"}
        self.assertEqual(list(module_rules.check_circles(paths)), [])


if __name__ == "__main__":
    unittest.main()
