# Needs nothing but make and Python 3.11 or newer; everything else goes into $(VENV).

# Tests and demos start hundreds of commands, which read compiled sources where these may be written.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEV_INSTALLED := $(VENV)/.installed-dev
DOCS_INSTALLED := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.PHONY: help install dev demo check test test-all coverage lint format format-check types docs bench figures lines clean

help:
	@echo "make demo      set up, then run the Vinifera scenario of the README"
	@echo "make test      set up with the development tools, then test everything once"
	@echo "make test-all  the same, and campaigns: an hour and more"
	@echo "make check     lint, format, types, unit and property tests"
	@echo "make coverage  unit and property tests with coverage, and its floor"
	@echo "make docs      build the site of docs/ into build/site"
	@echo "make install   set up only"
	@echo "make figures   reproduce the figures of the Vinifera paper"
	@echo "make bench     measure speed and memory"
	@echo "make lint | format | format-check | types"
	@echo "make lines     lines of the sources by room, beside what they are to have"
	@echo "make clean     remove caches and built packages (never results)"

install: $(INSTALLED)
dev: $(DEV_INSTALLED)

demo: $(INSTALLED)
	$(BIN)/gossamer sim run examples/vinifera/scenario.toml $(DEMO_ARGS)

# Three processes on two cores: some tests wait for others' processes. The tests of a file stay
# together, and those that share a session of Spark; the longest come first (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder

test: $(DEV_INSTALLED)
	$(PYTEST) $(PYTEST_ARGS)

test-all: $(DEV_INSTALLED)
	$(PYTEST) --all $(PYTEST_ARGS)

check: lint format-check types
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q tests/unit tests/property

# Rules that run compiled are invisible to coverage; these tests run them interpreted.
coverage: $(DEV_INSTALLED)
	$(PYTEST) --cov --cov-report=term:skip-covered tests/unit tests/property

lint: $(DEV_INSTALLED)
	$(BIN)/ruff check .

format: $(DEV_INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

format-check: $(DEV_INSTALLED)
	$(BIN)/ruff format --check .

types: $(DEV_INSTALLED)
	$(BIN)/mypy

# NO_MKDOCS_2_WARNING silences an announcement of the theme's, which is no warning about these pages.
docs: $(DOCS_INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(INSTALLED)
	$(BIN)/gossamer sim bench $(BENCH_ARGS)

figures: $(INSTALLED)
	$(BIN)/gossamer sim figures vinifera $(FIGURES_ARGS)

lines: $(DEV_INSTALLED)
	$(BIN)/python tests/support/room_lines.py

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -path ./.git -prune -o -path './.venv*' -prune -o \
	    -type d -name __pycache__ -exec rm -rf {} +

# The stamps make pip run again only when the project's metadata changed.
$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[node,sim]'
	@touch $@

$(DEV_INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(INSTALLED)

$(DOCS_INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@ $(INSTALLED)

# A python3.x on the path may be a stub that does not run, so candidates are tried, not looked up.
$(BIN)/python:
	@for python in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        if ! $$python -c 'import ensurepip, venv' 2>/dev/null; then \
	            echo "$$python comes without venv and pip: install the python3-venv package." >&2; \
	            exit 1; \
	        fi; \
	        echo "Making $(VENV) with $$($$python --version)."; \
	        exec $$python -m venv $(VENV); \
	    fi; \
	done; \
	echo "gossamer needs Python 3.11 or newer, and none was found: install one, or name it" \
	    "with 'make PYTHON=/path/to/python'." >&2; \
	exit 1
