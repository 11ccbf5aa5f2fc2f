# cmake -D INPUT=index.html -D OUTPUT=page_html.cc -P embed.cmake: the page's bytes as a string_view. {{name}} in it is the
# text of the file of that name beside it, so that the page is one answer without a second request. What others have written
# must have the SHA-256 that stands beside it.
cmake_minimum_required(VERSION 3.25)
function(check_sha256 file)
  get_filename_component(folder "${file}" DIRECTORY)
  get_filename_component(name "${file}" NAME)
  file(STRINGS "${folder}/SHA256SUMS" expected REGEX "  ${name}$")
  file(SHA256 "${file}" sum)
  if(NOT "${sum}  ${name}" STREQUAL "${expected}")
    message(FATAL_ERROR "${file}: expected the SHA-256 in SHA256SUMS, got ${sum}")
  endif()
endfunction()

get_filename_component(folder "${INPUT}" DIRECTORY)
file(READ "${INPUT}" page)
string(REGEX MATCHALL "{{[a-z_/.-]+}}" parts "${page}")
foreach(part IN LISTS parts)
  string(REGEX REPLACE "[{}]" "" name "${part}")
  file(READ "${folder}/${name}" text)
  if(name MATCHES "^third_party/")
    check_sha256("${folder}/${name}")
    string(REGEX REPLACE "\n//# sourceMappingURL=[^\n]*" "" text "${text}")  # a file that no server has
  endif()
  if(text MATCHES "<(script|/script|/style)")
    message(FATAL_ERROR "${name}: expected a text without <script, </script or </style, which would change where its element ends")
  endif()
  string(REPLACE "${part}" "${text}" page "${page}")
endforeach()
string(HEX "${page}" hex)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE "${OUTPUT}"
"#include \"server/page/page.h\"
namespace pagoda {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace
const std::string_view kPageHtml(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
}  // namespace pagoda
")
