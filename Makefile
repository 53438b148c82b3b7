# Two commands do everything: `make demo` and `make test`.  Both prepare .venv by `make setup`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Where a full-scale run writes its result files; empty means print only.
OUT ?=

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
	$(BIN)/crosstok inspect \
		"$$($(BIN)/python -m crosstok.assets gpt2)" \
		"$$($(BIN)/python -m crosstok.assets qwen2_5)"

test: setup
	$(BIN)/python -m pytest

verify: setup
	$(BIN)/python -m verify $(if $(OUT),--out $(OUT))

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
