# SPDX-License-Identifier: Apache-2.0
# The short names of the project's commands. Each one installs the Debian packages that it needs.

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 10
JOBS := $(shell nproc)
SOURCES = git ls-files -- '*.h' '*.cpp'

.PHONY: help run test check check-packages format check-format check-layering check-headers \
        check-tidy check-sanitize bench fuzz validate install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build, and plan the bundled job
	scripts/run

test: ## build with warnings as errors, and run every test
	scripts/test

check: check-format check-layering check-headers check-tidy check-sanitize ## everything below that starts with check-

check-packages:
	scripts/packages run test check

format: check-packages ## rewrite the sources in the project's format
	$(SOURCES) | xargs -r clang-format -i

check-format: check-packages ## clang-format finds nothing to change; every source has its SPDX line
	$(SOURCES) | xargs -r clang-format --dry-run -Werror
	@missing=$$($(SOURCES) '*.cmake' '*CMakeLists.txt' Makefile 'scripts/*' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0'); \
	  [ -z "$$missing" ] || { echo "no SPDX line in:" $$missing; exit 1; }

check-layering: ## includes point left on the ladder
	bash tests/layering/check_layering.sh .
	bash tests/layering/check_layering_test.sh

check-headers: check-packages ## each header compiles alone
	cmake --preset ci
	cmake --build --preset headers --parallel $(JOBS)

check-tidy: check-packages ## clang-tidy
	cmake --preset tidy
	cmake --build --preset tidy

check-sanitize: check-packages ## every test under ASan and UBSan
	cmake --preset dev
	cmake --build --preset dev --parallel $(JOBS)
	ctest --preset dev --parallel $(JOBS)

bench: ## the benchmarks; BENCH_ARGS go to Google Benchmark
	scripts/packages run bench
	cmake --preset release
	cmake --build --preset bench --parallel $(JOBS)
	build/release/bin/towtank_bench $(BENCH_ARGS)

fuzz: ## each fuzzer for FUZZ_SECONDS
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz

validate: ## predictions against published measurements
	@if [ -f validate/CMakeLists.txt ]; then \
	  cmake --preset ci && cmake --build --preset ci --parallel $(JOBS) && ctest --preset ci -L validate; \
	else echo "The validation suite is not part of this version."; fi

install: ## install to PREFIX (/usr/local)
	scripts/packages run
	cmake --preset release
	cmake --build --preset run --parallel $(JOBS)
	cmake --install build/release --prefix $(PREFIX)

clean: ## remove every build
	rm -rf build
