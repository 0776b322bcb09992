# `make demo` and `make test` need nothing but Python >= 3.11 with pip.
PYTHON ?= python3
OLDEST_PYTHON ?= python3.11
VENV := .venv
OLDEST := .venv-oldest
BUILD := build
BIN := $(VENV)/bin

# Two processes share two cores: threads of linear algebra would only wait for each other.
PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(1)/bin/python -m pytest -n 2

SPHINX = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet

.PHONY: demo test test-slow test-clusters test-oldest test-sdist lint bench tables docs docs-check docs-linkcheck clean

demo: $(VENV)/plots.stamp
	$(BIN)/isbor demo

test: lint
	$(call PYTEST,$(VENV))

test-slow: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m slow

# Real clusters whose workers are killed, and all numbers of workers.
test-clusters: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m slow tests/sources/test_dask.py

# The oldest versions that pyproject.toml promises. Their deprecations are no concern of ours.
test-oldest: $(OLDEST)/test.stamp
	$(call PYTEST,$(OLDEST)) -W ignore::DeprecationWarning $(addprefix tests/,core data model inference \
	  prediction search kernel gp metrics datasets sources estimators/test_parameters.py export/test_onnx.py) \
	  $(addprefix tests/estimators/test_contract.py::test_,constant_columns_are_harmless \
	  weights_are_repetitions_in_any_order labels_of_any_type_give_the_same_model \
	  data_frames_with_categories_and_missing_cells probabilities_and_losses bad_data_is_refused)

# What would be released: the wheel alone serves the command, and the source distribution has all that tests need.
test-sdist: $(VENV)/dev.stamp
	rm -rf $(BUILD)
	$(BIN)/python -m build --outdir $(BUILD)
	$(MAKE) $(BUILD)/venv/bin/python
	$(BUILD)/venv/bin/python -m pip install --quiet $(BUILD)/*.whl
	$(BUILD)/venv/bin/isbor --version
	$(BUILD)/venv/bin/python -m pip install --quiet "$$(echo $(BUILD)/*.whl)[test]"
	mkdir $(BUILD)/source && tar -xzf $(BUILD)/*.tar.gz -C $(BUILD)/source --strip-components=1
	cd $(BUILD)/source && ../venv/bin/python -m pytest -qq --collect-only tests > ../collected.txt
	cd $(BUILD)/source && $(call PYTEST,../venv) tests/model tests/inference tests/metrics tests/packaging

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

# The benchmarks that the README quotes and that take minutes; benchmarks/README.md has the others.
bench: $(VENV)/bench.stamp
	$(BIN)/isbor reproduce benchmarks.studies:SADDLE
	$(BIN)/isbor reproduce benchmarks.studies:PAPER --datasets bs
	$(BIN)/python -m benchmarks.million

# The documents' tables, printed from docs/results/records.jsonl.
tables: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.tables

# The site, build/docs/index.html: needs no network, neither to build nor to read. Links between its pages are checked.
docs: $(VENV)/docs.stamp
	$(SPHINX) docs $(BUILD)/docs

# Every page in a browser (chromium) of a phone's width: equations that fail, lines that are cut off.
docs-check: docs
	$(BIN)/python docs/check_pages.py $(BUILD)/docs

# Links to other sites.
docs-linkcheck: $(VENV)/docs.stamp
	$(SPHINX) -b linkcheck docs $(BUILD)/linkcheck

$(OLDEST)/bin/python: PYTHON := $(OLDEST_PYTHON)
$(VENV)/bin/python $(OLDEST)/bin/python $(BUILD)/venv/bin/python: %/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; found $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $* || { $(PYTHON) -m pip install virtualenv && $(PYTHON) -m virtualenv $*; }

$(addprefix $(VENV)/,plots.stamp dev.stamp bench.stamp docs.stamp): $(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[$*]"
	@touch $@

$(OLDEST)/test.stamp: pyproject.toml | $(OLDEST)/bin/python
	$(OLDEST)/bin/python tests/packaging/oldest.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet -c $(OLDEST)/oldest.txt -e ".[test]"
	@touch $@

clean:
	rm -rf $(VENV) $(OLDEST) $(BUILD) docs/gallery docs/reference/of .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
