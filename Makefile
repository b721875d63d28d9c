# The commands of the project. CI runs `make check` and `make test`.
PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
WORKERS ?= 2

.PHONY: help install check format test conformance budgets nightly docs models golden

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: ## make .venv and install Argosy in it, editable, with what development needs
	test -x .venv/bin/python || python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --editable '.[dev]'

check: ## format, lint, types, layers
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m ruff check
	$(PYTHON) -m mypy
	$(PYTHON) -m importlinter.cli lint --cache-dir .import_linter_cache

format: ## write what `check` would complain about, where a tool can
	$(PYTHON) -m ruff format
	$(PYTHON) -m ruff check --fix

test: ## the tests that every change runs
	$(PYTHON) -m pytest -n $(WORKERS)

conformance: ## ONNX's backend suite, and the table in the docs
	$(PYTHON) -m tests.conformance

budgets: ## time and memory of the compiler against the figures in the docs
	$(PYTHON) -m benchmarks.budgets

nightly: ## the slow tests and the large models
	$(PYTHON) scripts/fetch_models.py --set all
	$(PYTHON) -m pytest -n $(WORKERS) -m nightly

docs: ## build the documentation, warnings as errors
	$(PYTHON) -m mkdocs build --strict

models: ## fetch the real models that every change is tested with
	$(PYTHON) scripts/fetch_models.py

golden: ## write the golden artifacts anew (only with a new schema version)
	$(PYTHON) -m tests.artifact.golden
