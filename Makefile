# `make demo` shows a proof and a race, `make test` runs the tests; both set up .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types layers clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	@$(BIN)/racefree check --verbose examples/first_race.py; code=$$?; \
	if [ $$code -ne 1 ]; then echo "expected one race (exit status 1), got exit status $$code"; exit 1; fi

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) build dist
