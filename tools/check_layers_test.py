#!/usr/bin/env python3
"""Every rule of check_layers.py with a sample that breaks it and one that does not."""

import pathlib
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_layers  # noqa: E402
from function_lengths import functions_of  # noqa: E402


def messages(path, source):
    return [finding.message for finding in check_layers.findings_in(path, source)]


def include(header):
    return f'#include "{header}"\n'


class TestsRun(unittest.TestCase):
    def test_each_is_named(self):
        paths = ["src/a/b_test.cc", "src/a/b.cc", "tests/c/test_d_e.py", "tests/c/test_f.py"]
        builds = "pagoda_test(b SOURCES b_test.cc)\nset(tests d_e x)\npagoda_pytest(f tests/c/test_f.py)"
        self.assertEqual(list(check_layers.check_tests_run(paths, builds.replace("tests/c/", ""))), [])
        missing = check_layers.check_tests_run(paths, "pagoda_test(b SOURCES bb_test.cc d e test_f.pyc)")
        self.assertEqual([finding.path for finding in missing], ["src/a/b_test.cc", "tests/c/test_d_e.py", "tests/c/test_f.py"])


class CodeMap(unittest.TestCase):
    def findings(self, *rows):
        return [finding.message for finding in check_layers.check_code_map("\n".join(rows))]

    def rows(self):
        """The table as it must be."""
        return [f"| `src/{folder}` | what it is | {', '.join(sorted(others)) or 'nothing of ours'} |"
                for folder, others in check_layers.MAY_INCLUDE.items()]

    def test_says_what_the_code_says(self):
        self.assertEqual(self.findings(*self.rows()), [])

    def test_a_row_that_says_something_else(self):
        rows = [row.replace("| core, tensor |", "| core |") for row in self.rows()]
        self.assertEqual(self.findings(*rows), ["src/batch may include: expected core, tensor, got core"])

    def test_a_folder_that_it_lacks(self):
        self.assertEqual(self.findings(*self.rows()[1:]), ["src/core is not in the code map"])

    def test_a_folder_that_is_gone(self):
        gone = "| `src/plugins` | what they were | core |"
        self.assertEqual(self.findings(*self.rows(), gone), ["src/plugins may include: expected no such folder, got core"])


class IncludeRules(unittest.TestCase):
    def assert_allowed(self, path, header):
        self.assertEqual(messages(path, include(header)), [])

    def assert_refused(self, path, header, message):
        self.assertEqual(messages(path, include(header)), [message])

    def test_a_folder_includes_itself_and_what_is_below(self):
        self.assert_allowed("src/ops/linear/linear.h", "tensor/exec.h")
        self.assert_allowed("src/model/decoder.cc", "kv/kv_store.h")
        self.assert_allowed("src/server/http.cc", "serving/served_model.h")
        self.assert_allowed("src/cli/serve.cc", "server/http.h")

    def test_never_what_is_above(self):
        self.assert_refused("src/core/status.h", "tensor/tensor.h", "core may not include tensor/tensor.h")
        self.assert_refused("src/ops/linear/linear.h", "model/decoder.h", "ops may not include model/decoder.h")
        self.assert_refused("src/server/http.cc", "cli/flags.h", "server may not include cli/flags.h")

    def test_nor_what_is_beside(self):
        self.assert_refused("src/quant/q8_0.h", "batch/kv_view.h", "quant may not include batch/kv_view.h")
        self.assert_refused("src/kv/kv_store.h", "weights/gguf.h", "kv may not include weights/gguf.h")

    def test_text_is_joined_by_those_who_serve_alone(self):
        self.assert_refused("src/engine/engine.cc", "text/tokenizer.h", "engine may not include text/tokenizer.h")
        self.assert_refused("src/text/tokenizer.cc", "tensor/tensor.h", "text may not include tensor/tensor.h")
        self.assert_allowed("src/serving/served_model.h", "text/tokenizer.h")

    def test_bookkeeping_knows_no_tensors(self):
        self.assert_refused("src/engine/scheduler.cc", "tensor/exec.h", "bookkeeping may not include tensor/exec.h")
        self.assert_refused("src/kv/block_pool.h", "kv/kv_store.h", "bookkeeping may not include kv/kv_store.h")
        self.assert_refused("src/engine/sequence.h", "engine/engine.h", "bookkeeping may not include engine/engine.h")
        self.assert_allowed("src/engine/scheduler.cc", "kv/block_pool.h")
        self.assert_allowed("src/engine/sequence.h", "sampling/sampling_params.h")

    def test_a_new_folder_needs_a_layer(self):
        self.assertIn("folder src/plugins has no layer", messages("src/plugins/a.cc", "")[0])

    def test_each_folder_names_only_those_before_it(self):
        folders = list(check_layers.MAY_INCLUDE)
        for place, folder in enumerate(folders):
            self.assertLessEqual(check_layers.MAY_INCLUDE[folder], set(folders[:place]), folder)

    def test_rooms_include_what_stands_below_them(self):
        for path, target, refused in (
            ("src/server/http/http_session.cc", "server/openai/completions.h", True),
            ("src/server/ollama/ollama.cc", "server/anthropic/messages.h", True),
            ("src/server/chat/chat_job.h", "server/router.h", True),
            ("src/server/elsewhere/a.cc", "server/base/json_body.h", True),
            ("src/server/http/http_session.cc", "server/base/json_body.h", False),
            ("src/server/ollama/ollama.cc", "server/pooling/embeddings.h", False),
            ("src/server/http/http_listener_test.cc", "server/router.h", False),
            ("src/server/router.cc", "server/openai/completions.h", False),
        ):
            found = [message for message in messages(path, f'#include "{target}"\n') if "may not include" in message or "no room" in message]
            self.assertEqual(bool(found), refused, path)

    def test_a_folder_has_no_more_sources_than_one_reads(self):
        paths = [f"src/kv/{number}.cc" for number in range(check_layers.MAX_FOLDER_SOURCES)]
        self.assertEqual(list(check_layers.check_folder_sizes(paths)), [])
        self.assertEqual(len(list(check_layers.check_folder_sizes([*paths, "src/kv/more.h"]))), 1)

    def test_comments_say_who_and_end_their_sentences(self):
        long_sentence = " ".join(["word"] * 26) + "."
        table = "//   " + " ".join(["cell"] * 30)
        for path, source, refused in (
            ("src/kv/a.cc", f"// {long_sentence}\n", True),
            ("src/text/rust/jinja/src/a.rs", f"/// {long_sentence}\n", True),
            ("src/kv/a.cc", f"int a = 0;  // {long_sentence}\n", True),
            ("src/kv/a.cc", "// Nobody reads it.\n", True),
            ("src/kv/a.cc", "int a = 0;  // whose block it is\n", False),
            ("src/kv/a.cc", "int a = 0;  // Whose block it is\n", True),
            ("src/kv/a.cc", f"// A table:\n{table}\n", False),
            ("src/kv/a.cc", "// Two " + "words " * 20 + "here.\n// And " + "more " * 20 + "there.\n", False),
        ):
            found = [message for message in messages(path, source) if message.startswith(("a sentence", "a comment"))]
            self.assertEqual(bool(found), refused, source)

    def test_names_and_comments_have_the_fields_words(self):
        for line, word in (
            ("int settle_seed(int a);", "resolve"),
            ("// It settles the lengths.", "resolve"),
            ("bool takes_turns() const;", "interleave"),
            ("  kUnturned,", "unrotated"),
            ("Plan& landed = plans.front();", "completed"),
            ("int resolve_seed(int a);", None),
            ("// Loads and products take turns on the island.", None),
        ):
            found = [message for message in messages("src/kv/a.cc", line + "\n") if "the field's word" in message]
            self.assertEqual([message.split('"')[1] for message in found], [word] if word else [], line)

    def test_families_are_known_to_their_pages(self):
        source = '#include "model/families/family_pages.h"\n'
        self.assertTrue(any("known to its page" in message for message in messages("src/model/gguf/gguf_config.cc", source)))
        for path, text in (("src/model/family.cc", source), ("src/model/family_test.cc", source),
                           ("src/model/families/llama.cc", source + "const Family kLlama = {};\n")):
            self.assertFalse(any("known to its page" in message for message in messages(path, text)), path)

    def test_outside_headers_have_their_places(self):
        for header, bad, good in (
            ("<boost/beast.hpp>", "src/engine/engine.cc", "src/server/http.cc"),
            ("<nlohmann/json.hpp>", "src/core/status.cc", "src/weights/safetensors.cc"),
            ("<CLI/CLI.hpp>", "src/server/http.cc", "src/cli/main.cc"),
            ("<curl/curl.h>", "src/cli/main.cc", "src/hub/pull_http.cc"),
            ("<prometheus/counter.h>", "src/engine/engine.cc", "src/server/generation/metrics.cc"),
            ("<openssl/evp.h>", "src/kv/prefix_cache.cc", "src/core/sha256.cc"),
            ('"hwy/highway.h"', "src/engine/engine.cc", "src/ops/linear/linear_cpu.cc"),
            ('"mlx/mlx.h"', "src/ops/linear/linear_gpu.cc", "src/ops/linear/linear_mlx_test.cc"),
            ('"mlx/array.h"', "src/engine/model_runner.cc", "src/backend/mlx/mlx_buffer.h"),
            ("<cuda_runtime.h>", "src/engine/engine.cc", "src/backend/cuda/stream.cc"),
        ):
            name = header.strip('<>"')
            self.assertEqual(messages(bad, f"#include {header}\n"), [f"{name} is not for this file"], header)
            self.assertEqual(messages(good, f"#include {header}\n"), [], header)

    def test_includes_are_written_from_src(self):
        for header in ("status.h", "../core/status.h"):
            self.assert_refused("src/core/clock.cc", header, f'expected a path from src/, got "{header}"')

    def test_a_finding_names_its_line(self):
        findings = check_layers.findings_in("src/core/a.cc", "\n\n" + include("ops/dispatch.h"))
        self.assertEqual(str(findings[0]), "src/core/a.cc:3: core may not include ops/dispatch.h")


class OtherRules(unittest.TestCase):
    def test_a_file_has_400_lines_at_most_and_a_kernel_600(self):
        for path, limit in (("src/core/a.cc", 400), ("src/ops/linear/linear_cpu.cc", 600)):
            self.assertEqual(messages(path, "int a;\n" * limit), [])
            self.assertEqual(messages(path, "int a;\n" * (limit + 1)), [f"expected at most {limit} lines, got {limit + 1}"])

    def test_a_class_has_20_private_methods_at_most(self):
        def header(num_methods):
            methods = "".join(f"  int read_{i}(const Row& row) const;\n" for i in range(num_methods))
            return "class A {\n public:\n" + methods + "\n private:\n  struct B {\n    int c();\n  };\n" + methods + "\n  int d_ = 0;\n};\n"

        self.assertEqual(messages("src/core/a.h", header(20)), [])
        self.assertEqual(messages("src/core/a.h", header(21)), ["A: expected at most 20 private methods, got 21"])

    def test_a_comment_begins_with_a_noun_or_a_verb(self):
        for word in ("Of", "What", "That"):
            message = f'a comment begins with a noun or a verb, got "{word}"'
            self.assertEqual(messages("src/core/a.cc", f"// {word} each row.\nint a;\n"), [message])
        self.assertEqual(messages("src/core/a.cc", "// The sum\n// Of each row.\nint a;\n"), [])

    def test_a_function_says_with_a_verb_what_it_does(self):
        refused = "a function's comment begins with a verb (\"Returns\"), got \"The sum.\""
        for declaration in ("int sum(int a);", "  virtual int sum() const = 0;", "template <class T>\nT sum() {"):
            self.assertEqual(messages("src/core/a.h", f"// The sum.\n{declaration}\n"), [refused])
            self.assertEqual(messages("src/core/a.h", f"// Returns the sum.\n{declaration}\n"), [])
        for declaration in ("int sum = 0;", "struct Sum {", "std::function<int(int)> sum;", "", "using Sum = int(int);"):
            self.assertEqual(messages("src/core/a.h", f"// The sum.\n{declaration}\n"), [])
        self.assertEqual(messages("src/core/a.cc", "// The sum.\nint sum(int a);\n"), [])
        self.assertEqual(messages("src/core/a.cc", "// The sum.\nint sum(int a) {\n"), [refused])
        self.assertEqual(messages("src/core/a_test.cc", "// The sum.\nTEST(Sum, OfTwo) {\n"), [])
        self.assertEqual(messages("src/core/a.h", "// REQUIRES: `a` outlives this.\nexplicit A(int& a);\n"), [])

    def test_a_point_of_a_comments_list_is_not_torn(self):
        message = "a line of a list's point stands left of its text"
        self.assertEqual(messages("src/core/a.cc", "// - A point which\n// is\n//   torn.\nint a;\n"), [message])
        self.assertEqual(messages("src/core/a.cc", "//  - A point which\n//  is\n//    torn.\nint a;\n"), [message])
        for whole in ("// - A point\n//   of two lines.\n// - Another.\n", "// - A point.\n// The end.\n",
                      "// - A point.\n// Then:\n//   - another.\n", "// - A point.\n//\n// Text:\n//   a = b\n"):
            self.assertEqual(messages("src/core/a.cc", whole + "int a;\n"), [])

    def test_a_function_has_60_lines_at_most_and_a_kernel_150(self):
        def function(num_lines):
            return "void long_one() {\n" + "  ++n;\n" * (num_lines - 2) + "}\n"

        self.assertEqual(messages("src/core/a.cc", function(60)), [])
        self.assertEqual(messages("src/core/a.cc", function(61)), ["long_one: expected at most 60 lines, got 61"])
        kernel = "src/ops/linear/linear_cpu.cc"
        self.assertEqual(messages(kernel, function(150)), [])
        self.assertEqual(messages(kernel, function(151)), ["long_one: expected at most 150 lines, got 151"])
        self.assertEqual(messages("src/ops/linear/linear.cc", function(61)), ["long_one: expected at most 60 lines, got 61"])

    def test_names_say_something(self):
        for path in ("src/core/utils.h", "src/common/a.cc", "tests/support/server_helpers.py", "tools/misc.sh"):
            self.assertTrue(any("a name that says nothing" in message for message in messages(path, "")), path)
        self.assertEqual(messages("src/core/commonplace.h", ""), [])

    def test_no_backend_is_chosen_by_the_preprocessor(self):
        for line in ("#ifdef PAGODA_HAVE_MLX", "#if defined(PAGODA_CUDA)", "#  ifndef PAGODA_WITH_METAL"):
            self.assertEqual(len(messages("src/core/a.cc", line + "\n#endif\n")), 1, line)
        self.assertEqual(messages("src/core/a.cc", "#ifdef __APPLE__\n#endif\n"), [])

    def test_ordered_objects_are_ours(self):
        self.assertEqual(len(messages("src/server/b.cc", "using Json = nlohmann::ordered_json;")), 1)
        self.assertEqual(messages("src/server/b.cc", "// nlohmann::ordered_map compares\nOrderedJson json;"), [])

    def test_threads_are_started_where_their_lack_is_told(self):
        self.assertEqual(len(messages("src/server/b.cc", "thread_ = std::thread([this] { run(); });")), 1)
        self.assertEqual(len(messages("src/server/b.cc", "auto text = std::async(std::launch::async, read);")), 1)
        self.assertEqual(messages("src/server/b_test.cc", "std::thread([this] { run(); }).join();"), [])

    def test_nothing_is_unfinished_or_skipped(self):
        for line in ("// TO" "DO: later", "GTEST_" "SKIP();", "TEST(A, DISABLED_" "B) {}"):
            self.assertEqual(len(messages("src/core/a_test.cc", line + "\n")), 1, line)
        self.assertEqual(len(messages("tests/server/test_a.py", "@pytest.mark." "skip\ndef test(): pass\n")), 1)

    def test_every_source_folder_is_walked_and_build_folders_are_not(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path in ("src/core/a.cc", "tests/server/test_a.py", "src/text/rust/target/b.rs", "build/c.cc"):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("x\n" * 401 if path.endswith(".cc") else "pass\n")
            (root / "tests/CMakeLists.txt").write_text("set(tests a)\n")
            files = {file.relative_to(root).as_posix() for file in check_layers.source_files(root, check_layers.MEASURED)}
            self.assertEqual(files, {"src/core/a.cc", "tests/server/test_a.py"})
            self.assertEqual(len(check_layers.check_all(root)), 1)


def lengths(source, path="a.cc"):
    return [(name, num_lines) for name, _, num_lines in functions_of(path, textwrap.dedent(source))]


class FunctionLengths(unittest.TestCase):
    def test_plain_functions(self):
        self.assertEqual(lengths("int f() { return 1; }\n"), [("f", 1)])
        self.assertEqual(lengths("int f(int a,\n      int b) {\n  return a;\n}\n"), [("f", 4)])

    def test_members_and_nesting(self):
        source = """
            namespace a::b {
            class Foo final : public Bar {
             public:
              explicit Foo(int x) : x_(x), list_{1, 2}, size_{3} {
                run();
              }
              int size() const noexcept override { return size_; }

             private:
              int x_ = 0;
              std::vector<int> list_{};
              struct Inner {
                void go() {
                }
              };
            };
            }  // namespace a::b
        """
        self.assertEqual(lengths(source), [("Foo", 3), ("size", 1), ("go", 2)])

    def test_a_function_out_of_its_class(self):
        self.assertEqual(lengths("Foo::Foo(int x)\n    : x_(x) {\n}\nbool Foo::operator==(const Foo& o) const {\n}\n"),
                         [("Foo::Foo", 3), ("Foo::operator==", 2)])

    def test_templates_and_attributes(self):
        source = """
            template <typename T, class = std::enable_if_t<(sizeof(T) > 2)>>
            [[nodiscard]] static T f(T x) {
              return x;
            }
            template <class T>
            struct S {
              T value;
            };
        """
        self.assertEqual(lengths(source), [("f", 4)])

    def test_what_is_inside_a_function_belongs_to_it(self):
        source = """
            void f() {
              for (;;) {
                auto g = [](int x) {
                  return x;
                };
              }
              struct Local {
                void h() {}
              };
            }
            void g() {}
        """
        self.assertEqual(lengths(source), [("f", 10), ("g", 1)])

    def test_tables_and_enums_are_no_functions(self):
        source = """
            enum class Kind : int {
              kOne,
            };
            constexpr Case kCases[] = {
                {1, f(2)},
                {3, 4},
            };
            const std::vector<int> kList{
                1,
            };
            void f(Options options = {}) {
            }
        """
        self.assertEqual(lengths(source), [("f", 2)])

    def test_tests_are_named_by_suite_and_case(self):
        self.assertEqual(lengths("TEST_F(Suite, Case) {\n}\nTYPED_TEST(Other, Case) {}\n"),
                         [("Suite.Case", 2), ("Other.Case", 1)])

    def test_braces_in_literals_comments_and_directives_do_not_count(self):
        source = r'''
            void f() {
              const char* a = "}";  // }
              char b = '}', c = '\'', d = '"';
              /* } */
              auto e = R"json({"a": "}"} ")json";
              int n = 1'000'000;
            }
            #define MACRO(x) \
              do {
            void g() {
            }
        '''
        self.assertEqual(lengths(source), [("f", 7), ("g", 2)])

    def test_rust(self):
        source = """
            #[cxx::bridge]
            mod ffi {
                struct Shared { n: u32 }
                extern "Rust" {
                    fn f(x: &str) -> u32;
                }
            }
            impl<'a> Foo<'a> {
                pub fn name(&'a self) -> &'a str {
                    let c = '{';
                    match c { _ => r#"}"#, }
                }
            }
            fn g() {}
        """
        self.assertEqual(lengths(source, "a.rs"), [("name", 4), ("g", 1)])

    def test_python(self):
        self.assertEqual(lengths("class A:\n    def f(self):\n        pass\n", "a.py"), [("f", 2)])


if __name__ == "__main__":
    unittest.main()
