# One door for every verb: bare `make` lists them. Anything longer than a line is a Python script under scripts/.

PYTHON ?= python3.11
BIN := .venv/bin
JOBS ?= 2

.DEFAULT_GOAL := help

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv from the lock file, unless it stands
	@$(PYTHON) scripts/setup.py

demo: setup ## a running graph to play with, in ./demo (PORT=n; CHECK=1: question the running server and leave)
	@$(BIN)/python -m examples.demo $(if $(CHECK),--check) $(if $(PORT),--port $(PORT))

test: lint ## everything that must hold: format, lint, types, imports, tests, documents
	$(BIN)/pytest -n $(JOBS) --dist loadgroup

lint: setup ## format, lint, types and imports, without the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright --pythonpath $(BIN)/python

format: setup ## write what lint would ask for
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

faults: setup ## the fault laboratory at length, half an hour (SHARE=0.1: a tenth; DEEP=1: more; FIRST=name of one that failed: it alone)
	@PYTHONPATH=tests $(BIN)/python -m faults --jobs $(JOBS) $(if $(SHARE),--share $(SHARE)) $(if $(DEEP),--deep) $(if $(FIRST),--first $(FIRST))

fuzz: setup ## garbled texts of queries and schemas, a million of them (TEXTS=n)
	GARBLED_TEXTS=$(or $(TEXTS),1000000) $(BIN)/pytest -q -n $(JOBS) tests/lang/test_garbled_texts.py

bench: setup ## count requests, compare with other engines, write docs/benchmarks.md (DATA=folder of all WordNet; QUICK=1: small, writes nothing)
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick) $(if $(DATA),--data "$(DATA)")

wordnet: setup ## load all WordNet on a folder and on S3 and check every known answer (DATA=folder with the .jsonl.gz files)
	@$(BIN)/python -m examples.wordnet.everywhere "$(DATA)"

docs: setup ## run every example of the documents
	$(BIN)/pytest tests/project/test_documents.py

lock: setup ## write the lock file for pyproject's ranges, keeping what fits (UPGRADE=1: newer versions)
	$(BIN)/uv pip compile pyproject.toml --group dev --group bench --all-extras --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url $(if $(UPGRADE),--upgrade) --quiet \
		--custom-compile-command "make lock" --output-file requirements-dev.lock

clean: ## remove what was made here: .venv, caches, builds, the demo's data
	rm -rf .venv build dist demo benchmarks/out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup demo test lint format faults fuzz bench wordnet docs lock clean
