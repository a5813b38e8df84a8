# SPDX-License-Identifier: MIT
#
# The commands of the project. Meson builds and tools/run_tests.py runs the tests.
# This file only names the targets. `make` alone lists them.

MAKEFLAGS += --no-print-directory
STAGES := python3 tools/run_tests.py

# The folder that `make run` serves, and where; empty is this machine, port 8080.
WWW := www
LISTEN :=

# What `make lab` does; try LAB="compare --help".
LAB := tour

# Seconds for each target of `make fuzz`. `make soak` has another.
T := 60

# Minutes that `make test-all` may take; empty is no limit.
MINUTES :=

# How often `make under-load` runs the tests.
TIMES := 10

C_FILES = $(shell find src tests fuzz bench -name '*.[ch]')

.PHONY: help run build test test-all check analysis unit property conformance cost concurrency \
        e2e lab-test faults bench lab asan tsan valgrind package coverage under-load fuzz soak \
        pictures format diagram install uninstall deb dist clean hooks ready-to-run \
        ready-to-test ready-to-bench ready-to-lab ready-to-package

help: ## list the targets
	@echo 'weir: make TARGET'
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    expand -t 15

run: build ## serve the demo site in www/, on http://127.0.0.1:8080/ (LISTEN=, WWW=)
	@exec build/weir serve $(WWW) $(if $(LISTEN),--listen $(LISTEN)) \
	    $(if $(wildcard $(WWW)/errors/.),--error-pages $(WWW)/errors)

build: ready-to-run ## build the server: build/weir
	@CC=gcc scripts/configure build -Db_lto=true
	@ninja -C build

test: ready-to-test ## build, tests and quick checks, on every model (15 minutes)
	@$(STAGES) test

test-all: ready-to-test ## and sanitizers, Valgrind, faults, lab, clang-tidy (70 minutes)
	@$(STAGES) $(if $(MINUTES),--minutes $(MINUTES)) test rest

check: ready-to-test ## never writes: format, tidy, lint, types, warnings of clang, purity
	@$(STAGES) check

analysis: ready-to-test ## clang-tidy and cppcheck
	@$(STAGES) analysis

unit: ready-to-test ## unit tests of every layer
	@$(STAGES) unit

property: ready-to-test ## property tests (SEED=n replays one)
	@$(STAGES) property

conformance: ready-to-test ## the cases of tests/conformance, in memory
	@$(STAGES) conformance

cost: ready-to-test ## instructions of requests, beside the record (WHY="reason" records them)
	@$(STAGES) cost

concurrency: ready-to-test ## tests of what threads share
	@$(STAGES) concurrency

e2e: ready-to-test ## the built server from outside (K=name picks tests)
	@$(STAGES) e2e

lab-test: ready-to-test ## the tests of weir-lab (K=name picks tests)
	@$(STAGES) lab

faults: ready-to-test ## every call of a server's life fails once (FAULTS=recv:7:EINTR picks one)
	@FAULTS=$(or $(FAULTS),all) $(STAGES) faults

asan: ready-to-test ## unit, property, conformance, corpus and e2e under ASan and UBSan
	@$(STAGES) asan

tsan: ready-to-test ## unit and concurrency tests, and models with threads end to end, under TSan
	@$(STAGES) tsan

valgrind: ready-to-test ## every model under memcheck, and those with threads under helgrind
	@$(STAGES) valgrind

package: ready-to-test ## the Debian packages, installed and purged (VM=1: under AppArmor, too)
	@$(if $(VM),scripts/bootstrap vm && tools/kernel)
	@$(STAGES) package

coverage: ready-to-test ## which lines of src/ the tests of `make test` run
	@python3 tools/line_coverage.py

under-load: ready-to-test ## `make test` TIMES=10 times, with two busy loops on each core
	@tools/test-under-load $(TIMES)

fuzz: ready-to-test ## every fuzz target for T=60 seconds, under ASan and UBSan (ARGS=--record)
	@$(STAGES) --seconds $(T) fuzz $(ARGS)

soak: T := 3600
soak: ready-to-test build ## T=3600 seconds of a crowd, while everything happens to the server
	@WEIR=$(or $(WEIR),build/weir) .venv/bin/python -m tests.soak.soak --seconds $(T) $(ARGS)

bench: ready-to-bench build ## measure beside others (ARGS=--quick, MODELS=1, TLS=1, HTTP2=1, ...)
	@python3 bench/run.py $(if $(MODELS),--models) $(if $(LOAD),--load) $(if $(TLS),--tls) \
	    $(if $(HTTP2),--http2) $(if $(RULES),--rules) $(if $(FILES),--files) $(if $(CORES),--cores) \
	    $(if $(CLAIMS),--claims) \
	    $(if $(ATTACKS),--attacks) $(ARGS)

lab: ready-to-lab build ## weir-lab: a tour of 5 minutes, or LAB="compare --help"
	@.venv-lab/bin/weir-lab $(LAB)

pictures: ready-to-test ready-to-lab build ## take the pictures of the README, 5 minutes; writes
	@.venv-lab/bin/python tools/pictures.py

format: ready-to-test ## format C and Python, and draw the tables of the docs; writes
	@python3 tools/tidy.py --write
	@tools/layout -i $(C_FILES) || [ $$? = 77 ]
	@.venv/bin/ruff format --quiet
	@.venv/bin/ruff check --quiet --fix

diagram: ## draw src/LAYERS into ARCHITECTURE.md; writes
	@python3 tools/tidy.py --write

install: build ## install the server below prefix=/usr/local (DESTDIR is honoured)
	@$(if $(prefix),meson configure build --prefix=$(prefix) && ninja -C build --quiet)
	@meson install -C build --no-rebuild

uninstall: ## remove what `make install` has installed
	@ninja -C build --quiet uninstall

deb: ready-to-package ## the Debian packages of weir and weir-lab: build-deb/
	@packaging/build-deb

dist: ## the source as an archive, the same bytes each time: build-dist/
	@packaging/build-dist

clean: ## remove what was built (.venv and .venv-lab stay)
	@rm -rf build build-*

hooks: ## check format and tidiness before each commit
	@install -m 755 scripts/pre-commit "$$(git rev-parse --git-path hooks)/pre-commit"

ready-to-run:
	@scripts/bootstrap run

ready-to-test:
	@scripts/bootstrap test

ready-to-bench:
	@scripts/bootstrap bench

ready-to-lab:
	@scripts/bootstrap lab

ready-to-package:
	@scripts/bootstrap package
