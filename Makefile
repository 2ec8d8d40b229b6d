# Every target sets up what it needs. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with the operator and the development tools

$(STAMP): requirements/dev.txt pyproject.toml hack/setup
	@hack/setup "$(PYTHON)" $(VENV)
	@touch $@

run: setup ## run the operator here with examples/quickstart; Ctrl-C ends everything
	@exec $(BIN)/proxy-operator run --standalone --data-dir ./data --apply examples/quickstart --down-on-exit --log-level warning

test: setup ## unit, property, contract, fault, architecture and standalone end-to-end tests
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow"

test-slow: setup ## what takes too long for `make test`, such as fifty kills of a real operator
	$(BIN)/pytest -q -m slow

test-oracle: build/oracle/.ready ## the fake Compute Engine against the vendor's own clients, in an environment of its own
	build/oracle/bin/python -m pytest -q tests/oracle

build/oracle/.ready: requirements/oracle.txt pyproject.toml hack/setup
	@hack/setup "$(PYTHON)" build/oracle requirements/oracle.txt
	@touch $@

SEEDS ?= 50
FIRST_SEED ?= 1

simulate: setup ## play SEEDS seeds of fleets at a failing cloud, from FIRST_SEED on
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first-seed $(FIRST_SEED)

# Sockets cut on purpose may be collected late, in the time of another test.
CUT := -W "default::pytest.PytestUnraisableExceptionWarning"
# Real clusters on a busy machine: what fails is run again, alone, and must pass then.
once-more = $(BIN)/pytest -q $(1) || $(BIN)/pytest -q $(1) --last-failed --last-failed-no-failures none

test-cluster: setup image ## tests on a real Kubernetes (docs/testing.md); builds it once, about 15 minutes
	@PYTHON=$(BIN)/python hack/cluster/build
	$(call once-more,tests/integration $(CUT))
	$(call once-more,tests/e2e_cluster)

image: setup ## write dist/image.tar, an OCI archive of the operator; needs no container engine
	@$(BIN)/python -m hack.image operator dist/image.tar

check-wheel: setup ## build the wheel and try it on every Python found here
	hack/check-wheel $(BIN)

bench: setup ## measure: lease store, API, probe, a fleet of 5,000
	$(BIN)/python -m bench.lease_store --quick
	$(BIN)/python -m bench.http --quick
	$(BIN)/python -m bench.probe
	$(BIN)/python -m bench.fleet 5000 --steady 30

check: setup ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

fmt: setup ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: setup ## write the generated files (CRD, reference pages)
	$(BIN)/python hack/generate

check-generate: setup ## fail when a generated file is stale
	$(BIN)/python hack/generate --check

lock: setup ## resolve the dependencies anew into requirements/
	hack/lock $(BIN)


.PHONY: help setup run test test-slow simulate test-oracle test-cluster image check-wheel bench check fmt generate check-generate lock
