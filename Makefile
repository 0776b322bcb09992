# `make demo` and `make test` need nothing but Python >= 3.11 with pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow lint bench tables clean

demo: $(VENV)/demo.stamp
	$(BIN)/isbor demo

# Two processes share two cores: threads of linear algebra would only wait for each other.
test: lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-slow: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The benchmarks that the README quotes and that take minutes; benchmarks/README.md has the others.
bench: $(VENV)/bench.stamp
	$(BIN)/isbor reproduce benchmarks.studies:SADDLE
	$(BIN)/isbor reproduce benchmarks.studies:PAPER --datasets bs
	$(BIN)/python -m benchmarks.million

# The documents' tables, printed from docs/results/records.jsonl.
tables: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.tables

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; found $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m pip install virtualenv && $(PYTHON) -m virtualenv $(VENV); }

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[plots]"
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@

$(VENV)/bench.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[plots,svm,bench]"
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
