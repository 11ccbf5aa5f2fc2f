# The front door. Every target sets up what it needs first; a second run does nothing twice.
PAGODA := build/release/pagoda
PYTHON := .venv/bin/python
MODEL ?= smollm2
PORT ?= 8000
DEVICE ?= auto
MLX_MODEL ?=
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
ROOM ?=
ONLY ?=
SANITIZE ?=
EDIT := edit$(if $(SANITIZE),-sanitized)
CMAKE_BUILD := cmake --build --preset

.PHONY: help demo build serve install package bundle check test mutations attacks emulated bench tidy metal-on-cuda fuzz fuzz-threads format setup setup-test setup-emulated model
.NOTPARALLEL:
.DEFAULT_GOAL := help

help: ## these lines
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*##/\t/' | expand -t 12

demo: build model ## set up, fetch the default model, answer eight concurrent chats, print the figures
	$(PYTHON) tools/demo.py $(PAGODA) $(DEVICE)

build: setup build/release/build.ninja ## set up and build build/release/pagoda
	$(CMAKE_BUILD) release --target pagoda

serve: build model ## serve MODEL (smollm2) on PORT (8000) by DEVICE (auto), with the web page at /
	$(PAGODA) serve $(MODEL) --port $(PORT) --device $(DEVICE)

check: setup-test build/$(EDIT)/build.ninja ## build and run the quick tests of ROOM (server, say); ONLY=attention: cases named so; SANITIZE=1
	@tools/check_room.sh $(EDIT) "$(ROOM)" "$(ONLY)"

# The unit tests under the sanitizers first, then in release what takes the binary, a model, or the optimiser.
test: setup-test model build/dev/build.ninja build/release/build.ninja ## build and run every test that has not passed with the same binaries and files
	$(CMAKE_BUILD) dev --target pagoda_tests
	$(PYTHON) tools/run_tests.py dev
	$(CMAKE_BUILD) release --target pagoda pagoda_tests
	$(PYTHON) tools/run_tests.py release --label-exclude 'emulated|sanitized'

mutations: setup-test build/$(EDIT)/build.ninja ## make forty mistakes in copies of sources, each of which a unit test has to see (Linux); SANITIZE=1
	$(CMAKE_BUILD) $(EDIT) --target pagoda_mutated_tests
	$(PYTHON) tests/mutations/run_mutations.py build/$(EDIT) --all

attacks: setup-test build model ## every attack of tests/server/attacks in its whole size, beside a stream, in 1 GB of memory
	$(PYTHON) tests/server/attacks/whole_sizes.py $(PAGODA) --model $(MODEL)

emulated: setup-emulated ## cross-build the ops for AArch64 and run them under qemu
	cmake --preset release >/dev/null  # looks for what setup has installed, again
	ctest --preset release --label-regex emulated

install: build ## install into PREFIX (/usr/local), below DESTDIR where that is given
	cmake --install build/release --component program --strip --prefix $(PREFIX)

package: build ## a tarball and, on Linux, a Debian package in build/release
	cd build/release && cpack

bundle: setup-test build ## build/pagoda-bundle.tar.xz: to compare with llama.cpp and OpenVINO on a machine without a network
	$(CMAKE_BUILD) release --target pagoda_ops_test
	tools/bundle.sh

bench: setup-test build model ## this machine's limits, decoding and prefill against them, and llama.cpp in turns
	$(PAGODA) bench machine
	$(PAGODA) bench latency $(MODEL) --device $(DEVICE) --input-len 512 --output-len 128 --batch-size 1
	$(PAGODA) bench latency $(MODEL) --device $(DEVICE) --input-len 512 --output-len 128 --batch-size 8
	$(PAGODA) bench throughput $(MODEL) --device $(DEVICE) --num-prompts 32 --input-len 128 --output-len 64
ifeq ($(DEVICE),mlx)
	$(PYTHON) bench/on_a_mac.py $(PAGODA) --model $(MODEL) --mlx-model "$(MLX_MODEL)" --out build/pagoda-on-mac.txt
else
	-$(PYTHON) bench/vs_llama_cpp.py $(PAGODA) --turns 3
endif

tidy: setup-test build ## clang-tidy over every source
	$(PYTHON) tools/tidy.py build/release

metal-on-cuda: setup-test ## the kernels for Apple GPUs on an NVIDIA GPU: op cases, and figures beside its limits
	tests/metal/cuda/run.sh prepare
	tests/metal/cuda/run.sh check
	tests/metal/cuda/run.sh figures

fuzz: setup-test ## every fuzz target for FUZZ_SECONDS (60) by the address sanitizer
	tools/fuzz.sh $(FUZZ_SECONDS) address

fuzz-threads: setup-test ## the fuzz target that has threads for FUZZ_SECONDS (60) by the thread sanitizer
	tools/fuzz.sh $(FUZZ_SECONDS) thread server_fuzz

format: setup-test ## clang-format over every C++ file
	$(PYTHON) tools/check_layers.py --format

model: build ## fetch the default model into the user's cache folder
	$(PAGODA) pull smollm2

setup:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

setup-emulated:
	@tools/setup.sh emulated

build/%/build.ninja: | setup
	cmake --preset $*
