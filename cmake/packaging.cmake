# `cmake --install` and `cpack`. Installed, the program and the libraries that are its own lie together in lib/pagoda, as in
# the build, and bin/pagoda leads there.
#
# Two components: `program`, which asks the system for its libraries as a package does, and `libraries`, which are these
# libraries but for the C library, so that the tarball needs nothing of the system that is newer than it.
set(home lib/pagoda)
set(folder_of_program $ORIGIN)
if(APPLE)
  set(folder_of_program @loader_path)
endif()
# The build's program has the same path: CMake would fill one of its own up to this length with colons, and an entry between
# two colons is the current folder.
set_target_properties(pagoda PROPERTIES BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "${folder_of_program}/lib/mlx/lib;${folder_of_program}/lib")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The libraries' own libraries are found by the program's path too.
  target_link_options(pagoda PRIVATE LINKER:--disable-new-dtags)
endif()

install(TARGETS pagoda RUNTIME_DEPENDENCY_SET libraries RUNTIME DESTINATION ${home} COMPONENT program)
if(PAGODA_HAVE_MLX)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/ DESTINATION ${home}/lib COMPONENT program USE_SOURCE_PERMISSIONS)
endif()
install(CODE [[
  set(bin "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin")
  file(MAKE_DIRECTORY "${bin}")
  file(CREATE_LINK ../lib/pagoda/pagoda "${bin}/pagoda" SYMBOLIC)
]] COMPONENT program)
install(FILES LICENSE README.md CHANGELOG.md packaging/grafana.json packaging/prometheus/alerts.yaml DESTINATION share/doc/pagoda COMPONENT program)
foreach(name markdown-it temml)
  install(FILES src/server/page/third_party/${name}/LICENSE DESTINATION share/doc/pagoda RENAME LICENSE.${name} COMPONENT program)
endforeach()
install(RUNTIME_DEPENDENCY_SET libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libdl\\.so" "^libpthread\\.so" "^librt\\.so" "^libresolv\\.so" "^libmlx" "^lib(blas|lapack|gfortran|quadmath)-"
  DESTINATION ${home}/lib COMPONENT libraries)
# The program prints its completions and manual page itself. A build for another machine, which can't
# run it, is installed without them.
if(NOT CMAKE_CROSSCOMPILING)
  set(printed ${CMAKE_BINARY_DIR}/printed)
  install(CODE "
    file(MAKE_DIRECTORY \"${printed}\")
    foreach(words \"man=pagoda.1\" \"completions;bash=pagoda\" \"completions;zsh=_pagoda\" \"completions;fish=pagoda.fish\")
      string(REGEX REPLACE \"=.*\" \"\" arguments \"\${words}\")
      string(REGEX REPLACE \".*=\" \"\" name \"\${words}\")
      execute_process(COMMAND \"$<TARGET_FILE:pagoda>\" \${arguments} OUTPUT_FILE \"${printed}/\${name}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT program)
  install(FILES ${printed}/pagoda.1 DESTINATION share/man/man1 COMPONENT program)
  install(FILES ${printed}/pagoda DESTINATION share/bash-completion/completions COMPONENT program)
  install(FILES ${printed}/_pagoda DESTINATION share/zsh/site-functions COMPONENT program)
  install(FILES ${printed}/pagoda.fish DESTINATION share/fish/vendor_completions.d COMPONENT program)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The prefix is known no sooner than the program is installed. That of a tarball is a folder of cpack's: its unit has the
  # prefix that install.sh replaces.
  install(CODE "
    set(installed_prefix \"\${CMAKE_INSTALL_PREFIX}\")
    if(installed_prefix MATCHES \"/_CPack_Packages/\")
      set(installed_prefix /usr/local)
    endif()
    configure_file(\"${PROJECT_SOURCE_DIR}/packaging/pagoda.service.in\" \"${CMAKE_BINARY_DIR}/pagoda.service\" @ONLY)"
    COMPONENT program)
  install(FILES ${CMAKE_BINARY_DIR}/pagoda.service DESTINATION lib/systemd/system COMPONENT program)
  install(FILES packaging/pagoda.toml DESTINATION share/doc/pagoda COMPONENT program)
endif()

set(CPACK_PACKAGE_VENDOR "The Pagoda authors")
set(CPACK_PACKAGE_CONTACT "The Pagoda authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Serves language models on machines you own")
set(CPACK_PACKAGE_FILE_NAME "pagoda-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(CPACK_GENERATOR TGZ DEB)
endif()
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_components.cmake)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib/mlx/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, python3-pip")  # for `pagoda pull`
include(CPack)
