# Two commands do everything: `make demo` and `make test`.  Both prepare .venv by `make setup`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Where a full-scale run writes its result files; empty means print only.
OUT ?=

# numba keeps what it compiled for as long as the file of the *outer* function is unchanged, and
# does not see an edit to a compiled function that it calls from another file.  So the name of
# its cache carries a digest of every file with compiled functions.
COMPILED := $(shell grep -rlw njit --include='*.py' src/crosstok | sort | xargs cat | cksum | tr -d ' ')
export NUMBA_CACHE_DIR := $(CURDIR)/.numba_cache/$(COMPILED)

.DEFAULT_GOAL := help
.PHONY: help setup demo test verify lint clean

help:
	@echo "make setup   prepare $(VENV): a virtual environment with the package and its tools"
	@echo "make demo    compare two tokenizers (the first run downloads them)"
	@echo "make test    run the tests"
	@echo "make verify  run the heavy suites at the scale CROSSTOK_BUDGET (1 is full)"
	@echo "make lint    run the static checks"
	@echo "make clean   remove $(VENV) and everything built"

setup: $(STAMP)

# The stamp is touched last, so an interrupted set-up is done again.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: setup
	$(BIN)/crosstok inspect asset:gpt2 asset:qwen2_5

test: setup
	$(BIN)/python -m pytest

verify: setup
	$(BIN)/python -m verify $(if $(OUT),--out $(OUT))

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist .numba_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
