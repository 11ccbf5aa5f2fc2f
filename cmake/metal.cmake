# .metal files as strings: Metal's compiler gets them when a model is loaded, and knows no folders, so the files of ours that
# they include are put in place, each once.
function(pagoda_expand_metal file out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX MATCHALL "#include \"[^\"]*\"\n" includes "${text}")
  foreach(include ${includes})
    string(REGEX REPLACE "#include \"(.*)\"\n" "\\1" path "${include}")
    get_property(seen GLOBAL PROPERTY pagoda_metal_seen)
    set(inner "")
    if(NOT path IN_LIST seen)
      set_property(GLOBAL APPEND PROPERTY pagoda_metal_seen ${path})
      pagoda_expand_metal(${PROJECT_SOURCE_DIR}/src/${path} inner)
    endif()
    string(REPLACE "${include}" "${inner}" text "${text}")
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# pagoda_metal_name(rms_norm name): kRmsNormMetal, the constant of rms_norm.metal.
function(pagoda_metal_name stem out)
  string(REPLACE "_" ";" words ${stem})
  set(name k)
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 initial)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${initial} initial)
    string(APPEND name ${initial}${rest})
  endforeach()
  set(${out} ${name}Metal PARENT_SCOPE)
endfunction()

# pagoda_metal_sources(backend_gpu FOLDER/metal_sources.h a.metal b/c.metal): a source file in the target for each, which
# defines kAMetal and kCMetal (backend/gpu/gpu_launch.h has the type), and that header, which declares them. The header is
# generated, too, and includes find it by that path.
function(pagoda_metal_sources target header)
  set(declarations "")
  foreach(file ${ARGN})
    cmake_path(GET file STEM stem)
    set_property(GLOBAL PROPERTY pagoda_metal_seen "")
    pagoda_expand_metal(${CMAKE_CURRENT_SOURCE_DIR}/${file} text)
    pagoda_metal_name(${stem} name)
    file(CONFIGURE OUTPUT ${stem}_metal.cc @ONLY CONTENT
      "#include \"@header@\"\n\nnamespace pagoda::gpu {\n\nextern const GpuSource @name@ = {\"@stem@\", R\"metal(@text@)metal\"};\n\n}  // namespace pagoda::gpu\n")
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${stem}_metal.cc)
    string(APPEND declarations "extern const GpuSource ${name};\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/src/${header} @ONLY CONTENT
    "#pragma once\n\n#include \"backend/gpu/gpu_launch.h\"\n\nnamespace pagoda::gpu {\n\n@declarations@\n}  // namespace pagoda::gpu\n")
  target_include_directories(${target} PUBLIC ${PROJECT_BINARY_DIR}/src)
endfunction()
