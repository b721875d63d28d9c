# The commands of the project. CI runs `make check` and `make test`.
#
# Everything runs in a virtual environment: the active one, or .venv, which is made when it is missing.
VENV := $(or $(VIRTUAL_ENV),.venv)
export PATH := $(abspath $(VENV))/bin:$(PATH)
INSTALLED := $(VENV)/.argosy-installed
WORKERS ?= 2

.PHONY: help install upgrade check format demo test conformance budgets bench-cpu bench-gpu nightly docs models golden

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(INSTALLED) ## install Argosy, editable, with what development needs

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

upgrade: install ## take the newest releases that pyproject.toml allows, and write them to constraints.txt
	python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[dev]'
	names=$$(sed -n 's/==.*//p' constraints.txt | paste -sd'|'); \
	{ grep '^#' constraints.txt; python -m pip list --format freeze | grep -iE "^($$names)=="; } > constraints.new
	mv constraints.new constraints.txt
	git diff --stat --patch -- constraints.txt

check: install ## format, lint, types, layers
	ruff format --check
	ruff check
	mypy
	lint-imports --no-logo

format: install ## write what `check` would complain about, where a tool can
	ruff format
	ruff check --fix

demo: install ## fetch a small model, compile it, run it on files of this repository
	python scripts/fetch_models.py magika-model
	python scripts/demo.py

test: install models ## the tests that every change runs
	pytest -n $(WORKERS)

conformance: install ## ONNX's backend suite on ref and as native code, and the table in the docs
	python -m tests.conformance --at-least 1850 --target ref --target cpu --target cpu-x86-64-v3
	python -m tests.conformance --at-least 1950 --target cpu-with-host-steps

budgets: install ## time and memory of the compiler against the figures in the docs
	python -m benchmarks.budgets

bench-cpu: install models ## the CPU target beside ONNX Runtime and OpenVINO; results in benchmarks/results
	python -m pip install --quiet --editable '.[bench]'
	python -m benchmarks.cpu

bench-gpu: install ## the GPU target beside PyTorch, on a GPU: packs compiled here or elsewhere, in build/gpu
	test -d build/gpu || python -m benchmarks.gpu pack build/gpu
	python -m benchmarks.gpu run build/gpu --kernels 8

nightly: install conformance ## the slow tests, the large models and ONNX's backend suite
	python scripts/fetch_models.py --set all
	pytest -n $(WORKERS) -m nightly

docs: install ## build the documentation, warnings as errors
	mkdocs build --strict

models: install ## fetch the real models that every change is tested with
	python scripts/fetch_models.py

golden: install ## write the golden artifacts anew (only with a new schema version)
	python -m tests.artifact.golden
