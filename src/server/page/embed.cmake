# cmake -D INPUT=index.html -D OUTPUT=page_html.cc -P embed.cmake: the page's bytes as a string_view. {{name}} in it is the
# text of the file of that name beside it, so that the page is one answer without a second request.
cmake_minimum_required(VERSION 3.25)
get_filename_component(folder "${INPUT}" DIRECTORY)
file(READ "${INPUT}" page)
string(REGEX MATCHALL "{{[a-z_]+\\.[a-z]+}}" parts "${page}")
foreach(part IN LISTS parts)
  string(REGEX REPLACE "[{}]" "" name "${part}")
  file(READ "${folder}/${name}" text)
  if(text MATCHES "</(script|style)")
    message(FATAL_ERROR "${name}: expected a text without </script or </style, which would end its element")
  endif()
  string(REPLACE "${part}" "${text}" page "${page}")
endforeach()
string(HEX "${page}" hex)
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
