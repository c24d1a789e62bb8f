# SPDX-License-Identifier: BSD-2-Clause
# The front door. Meson does the work; these targets only call it, after seeing to the packages.
#
#   make           build                        make demo      build and show decoded telemetry
#   make check     what decides; a quarter of an hour          make check-all   everything; an hour and more
#   make lint      static checks                make asan      tests under address and undefined sanitizers
#   make format    reformat the sources         make tsan      tests under the thread sanitizer
#   make fuzz      [TARGET=NAME] [TIME=60]      make install   [DESTDIR=] [PREFIX=/usr/local]
#   make bench     figures beside their ceilings
#   make deps      packages for make check      make clean     remove build/
#   make vectors-update NAME=x                  make man       manual pages into build/man
#   make check-rxe our RDMA engines against Linux soft-RoCE in an emulated machine (part of both checks)
#   make check-flink  exported questions answered by Flink over a topic (part of make check-all)
#   make soak      [HOURS=24] of the daemon's time, in minutes

BUILD  ?= build
PREFIX ?= /usr/local
TIME   ?= 60
HOURS  ?= 24

# A compiler cache (ccache), where there is one, finds in a fresh clone what it has compiled in another folder.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

NINJA = ninja -C $(BUILD)/$(1) $(if $(VERBOSE),-v,--quiet)

all: release

build-deps:
	@tools/deps build

deps:
	@tools/deps test

# One folder per flavour. Meson reconfigures by itself when a meson.build changes, tools/configure when an
# optional library comes or goes. An existing folder keeps its other options.
configure: build-deps
	@[ -e $(BUILD)/release/build.ninja ] || echo "building into $(BUILD)/release"
	@tools/configure $(BUILD)/release --buildtype=debugoptimized

release: configure
	@$(call NINJA,release)

# Only the program, not the tests: so that the first time is short.
demo: configure
	@$(call NINJA,release) src/cli/pathline
	@$(BUILD)/release/src/cli/pathline demo

check: deps
	@tools/check quick

check-all: deps
	@tools/check all

asan tsan: deps
	@tools/check $@

lint: deps
	@tools/lint

check-flink: deps release
	tools/kafka $(BUILD)/kafka-server
	tools/flink $(BUILD)/flink
	@meson test -C $(BUILD)/release --no-rebuild --print-errorlogs flink

check-rxe: deps release
	@meson test -C $(BUILD)/release --no-rebuild --print-errorlogs --suite rxe

fuzz: deps
	@tools/fuzz --time $(TIME) $(TARGET)

bench: release
	@$(BUILD)/release/src/cli/pathline bench $(NAME)

soak: deps release
	@python3 tests/net/clock.py $(BUILD)/release/src/cli/pathline $(HOURS) promise_flat

format: deps
	@git ls-files '*.c' '*.h' | xargs clang-format -i

vectors-update: release
	@$(call NINJA,release)
	@tests/vectors/run --update $(BUILD)/release/src/cli/pathline $(BUILD)/release/tests/vectors $(NAME)

man: release

# A folder configured by make check, or earlier with another PREFIX, gets the one asked for.
install: release
	@meson configure $(BUILD)/release --prefix=$(PREFIX)
	@$(call NINJA,release)
	@meson install -C $(BUILD)/release --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

clean:
	@rm -rf $(BUILD)

.PHONY: all build-deps deps configure release demo check check-all check-flink check-rxe asan tsan lint fuzz bench soak \
	format vectors-update man install clean
