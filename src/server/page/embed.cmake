# cmake -D INPUT=index.html -D OUTPUT=page_html.cc -P embed.cmake: the file's bytes as a string_view.
file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE "${OUTPUT}"
"#include \"server/page.h\"
namespace pagoda {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace
const std::string_view kPageHtml(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
}  // namespace pagoda
")
