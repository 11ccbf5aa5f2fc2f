# Debian's cross compiler, and qemu to run what it builds.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# This machine's own libraries are no use.
set(CMAKE_IGNORE_PATH /usr/lib/x86_64-linux-gnu)
set(PKG_CONFIG_EXECUTABLE "" CACHE FILEPATH "None: it would name this machine's own libraries")
