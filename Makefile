# Everything a person does here. `make` alone says what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
JOBS ?= 2

.PHONY: help setup plan test test-full check format lint types layers pytest speed accuracy fit clean
.DEFAULT_GOAL := help

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Set up .venv with Linkwise and what its checks need (done once)

# pip of a fresh Python 3.11 installs all of this; it is not upgraded, so that one index is enough.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Linkwise needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

plan: setup ## Plan the example: Llama 3.1 70B on 256 H100
	$(BIN)/linkwise plan examples/llama-70b.yaml examples/h100-256.yaml

test: setup ## Set up, then run every check
	@$(MAKE) --no-print-directory check

test-full: setup ## Install torch, then run every check and every test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[torch]'
	@$(MAKE) --no-print-directory format lint types layers
	LINKWISE_REQUIRE="$${LINKWISE_REQUIRE:-torch}" $(BIN)/pytest -n $(JOBS) --quiet -m ''

check: format lint types layers pytest ## Format, lint, types, layers and tests

format: setup ## Check the format
	$(BIN)/ruff format --check .

lint: setup ## Lint
	$(BIN)/ruff check .

types: setup ## Check types
	$(BIN)/mypy

layers: setup ## Check that rooms import only rooms below them
	$(BIN)/lint-imports

pytest: setup ## Run the tests
	$(BIN)/pytest -n $(JOBS) --quiet

speed: setup ## Print how fast the search and the start-up are
	$(BIN)/python tools/speed.py
	$(BIN)/python tools/doctor_speed.py

accuracy: setup ## Score the model on the measurements and write docs/accuracy.md
	$(BIN)/python tools/accuracy.py
	$(BIN)/python tools/doctor_accuracy.py

fit: setup ## Fit the constants of the model again
	$(BIN)/python tools/fit.py

clean: ## Remove the environment and all caches
	rm -rf $(VENV) .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
