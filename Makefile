# Two commands do everything on a fresh Debian or Ubuntu machine with Go, gcc and Python 3: `make demo` and `make test`.

SHELL := /bin/bash
GO ?= go
BIN := bin/datawait

# The first Python that has PyTorch; without one, plain python3 (the demo runs without PyTorch, the tests do not).
find-torch := import sys, importlib.util as u; sys.exit(u.find_spec("torch") is None)
ifndef PYTHON
PYTHON := $(shell for p in python3 /usr/bin/python3; do $$p -c '$(find-torch)' 2>/dev/null && echo $$p && exit; done; echo python3)
endif
export DATAWAIT_PYTHON := $(PYTHON)

PYFILES := probe/hook examples

# Modules of their own, for what the program itself has no need of.
MODULES := $(patsubst %/go.mod,%,$(wildcard examples/*/go.mod exporters/*/go.mod))

.PHONY: help build demo test test-go test-python test-latest-torch soak lab bench bench-readme gpu-check lint setup wheel clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# Lazy binding: the NVIDIA bindings resolve their symbols when first called, so the binary starts where no driver is; weakened, it
# starts also where LD_BIND_NOW is set. Their headers mark functions as deprecated that the bindings still wrap.
export CGO_LDFLAGS = -Wl,-z,lazy
export CGO_CFLAGS = -Wno-deprecated-declarations

build: ## Build bin/datawait
	$(GO) build -trimpath -o $(BIN) ./cmd/datawait
	@$(GO) run .ci/weaken.go $(BIN)

demo: build ## The case study in a minute, without a GPU: before and after, side by side and their comparison
	$(BIN) demo --python $(PYTHON) --force --out demo-out

setup: ## Install what the tests need (Debian packages, no recommends)
	@.ci/setup

test: setup ## All tests: Go with the race detector, and Python
	$(MAKE) test-go test-python

# The examples train for real and are held to shares of time, so they run one after another and beside nothing else. They
# are verbose, so that a scenario which a busy machine left inconclusive is seen to be skipped. Most scenarios are
# left to make lab.
test-go: build
	$(GO) test -race -timeout 20m $$($(GO) list ./... | grep -v -e /examples/ -e '/cmd/datawait$$' -e '/analysis$$')
	$(GO) test -timeout 20m ./analysis # hundreds of whole analyses, in which only ranks run side by side
	$(GO) test -race -run SideBySide ./analysis
	$(GO) test -timeout 20m -parallel 6 -skip TestFrameworks ./cmd/datawait # whole runs, most of which wait
	$(GO) test -run Allocat ./probe/recording ./probe/spool ./analysis/ledger # built without the race detector, which allocates
	for module in $(MODULES); do (cd $$module && $(GO) test -timeout 20m ./...) || exit; done
	@echo 'examples/frameworks, TestFrameworks… and TestLatest… are not run here: make test-latest-torch installs what they need and runs them'
	$(GO) test -v -race -timeout 20m -p 1 -skip 'TestLatest' $$($(GO) list ./examples/... | grep -v /examples/frameworks)

# Two at a time where pytest-xdist is there.
test-python:
	$(PYTHON) -m pytest -q -rs $$($(PYTHON) -c 'import xdist; print("-n 2 --dist loadgroup")' 2>/dev/null) probe/hook/tests

# The same with the newest PyTorch and the frameworks people train with, in an environment of its own (5 GB).
LATEST_TESTS ?= probe/hook/tests
LATEST := $(CURDIR)/.cache/torch-latest/bin/python
test-latest-torch: build ## The hook and the frameworks with the newest PyTorch (installs 5 GB into .cache)
	@.ci/torch-latest
	$(LATEST) -m pytest -q -rs -n 2 --dist loadgroup $(LATEST_TESTS)
	DATAWAIT_LATEST_PYTHON=$(LATEST) $(GO) test -v -count=1 -timeout 20m -p 1 $(FRAMEWORKS) ./examples/frameworks
	DATAWAIT_LATEST_PYTHON=$(LATEST) $(GO) test -v -count=1 -timeout 20m -run TestFrameworks ./cmd/datawait
	DATAWAIT_LATEST_PYTHON=$(LATEST) $(GO) test -v -count=1 -timeout 10m -run TestLatest ./examples/traps

# The tests run a few of these; this is what shows that a window of a millisecond is closed.
soak: setup ## 1000 short trainings in which a random process is killed at a random moment (most of an hour), and 5000 jobs under one agent
	SOAK_RUNS=$${SOAK_RUNS:-1000} $(GO) test -v -count=1 -timeout 3h -run TestSoak ./cmd/datawait/internal/soak
	SOAK_JOBS=$${SOAK_JOBS:-5000} $(GO) test -v -count=1 -timeout 3h -run TestSoak ./cmd/datawait/internal/serve

lab: build ## Scenarios with a known answer on real PyTorch, their fixes made for real; writes examples/lab/RESULTS.md (half an hour)
	DATAWAIT_LAB=$(CURDIR)/examples/lab/RESULTS.md $(GO) test -count=1 -v -timeout 3h -run TestLab ./examples/lab

bench: build ## Benchmarks, readable by benchstat
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./probe/... ./analysis/... ./report/... ./exporters/... ./cmd/...
	$(PYTHON) probe/hook/bench

# What README says of costs: its benchmarks alone, on a machine that does nothing else (or say MACHINE="2 shared cores").
# The hook's with the newest PyTorch, where that is installed, and TraceML beside it.
README-BENCH := BenchmarkScan$$/frame=512|BenchmarkRun$$|BenchmarkPlay$$/^(FullCores|CoreForEach)$$|BenchmarkRank$$|BenchmarkReportOfADay|BenchmarkRender|BenchmarkAgent|BenchmarkScrape/gpus=16/ranks=64/gzip|BenchmarkRecords$$/ranks=8/steps=1000
bench-readme: build ## Measure what README says of costs, and write it there
	@mkdir -p bin
	$(GO) test -run '^$$' -bench '$(README-BENCH)' -timeout 30m ./probe/recording ./analysis ./analysis/loader/replay ./analysis/fixes ./analysis/live ./report ./exporters/prometheus ./cmd/datawait/internal/cost | tee bin/bench-go.txt
	$(if $(wildcard $(LATEST)),$(LATEST),$(PYTHON)) probe/hook/bench | tee bin/bench-hook.txt
	.ci/bench-readme bin/bench-go.txt bin/bench-hook.txt

# Where there is no Go, a bin/datawait that was carried there will do.
gpu-check: ## Hold datawait against a GPU that does known work (4 minutes; needs PyTorch with CUDA); prints JSON
	@[ -x $(BIN) ] || $(MAKE) build
	@$(PYTHON) examples/gpucheck/check.py --datawait $(BIN)

lint: ## gofmt, vet, staticcheck, ruff, mypy
	@.ci/lint

wheel: ## Build the hook's wheel into dist/
	$(PYTHON) -m pip wheel --no-deps --no-build-isolation -w dist ./probe/hook

clean:
	rm -rf bin dist demo-out
