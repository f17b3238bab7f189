# `make demo` shows a proof and a race, `make test` runs the tests; both set up .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
DEVELOPS := $(VENV)/.develops
# Modules are compiled when they are first imported: most of what is installed never is.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt

.PHONY: demo test matrix docs lint types layers clean

$(RUNS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[triton]' torch
	touch $@

$(DEVELOPS): $(RUNS)
	$(INSTALL) -e '.[dev]'
	touch $@

demo: $(RUNS)
	@$(BIN)/racefree check --verbose examples/first_race.py; code=$$?; \
	if [ $$code -ne 1 ]; then echo "expected one race (exit status 1), got exit status $$code"; exit 1; fi

test: $(DEVELOPS)
	$(BIN)/python -m pytest -n 2

# The corpus, and the tests that concern them, with other versions of Triton, Z3, Python and all else.
matrix: $(DEVELOPS)
	$(BIN)/python tests/matrix/run_matrix.py --folder $(VENV)/matrix

docs: $(DEVELOPS)
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build/html

lint: $(DEVELOPS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEVELOPS)
	$(BIN)/mypy

layers: $(DEVELOPS)
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) build dist
