# One target per task; each sets up what it needs. `make help` lists them.
SHELL := /bin/bash
RUN := scripts/run
PYTEST := $(RUN) python -m pytest
SPARK ?= 4.3
# Processes of the tests that need a session, which takes gigabytes in each.
SPARK_PROCESSES ?= 2
export SPARK_PROCESSES
TESTS ?= tests
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-spark check format docs bench bench-peers interop torture wheel lock clean

help: ## list the targets
	@echo "drawstring: Apache Hudi tables in PySpark through DataSource V2"; echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv with the locked dependencies and find or install Java (second run: nothing to do)
	@SPARK=$(SPARK) scripts/setup.sh

demo: ## create, write, upsert and read a Hudi table, and show what the V2 read did
	@$(RUN) python examples/demo.py $(ARGS)

test: ## run the whole test suite (TESTS=path, ARGS='-k name' narrow it)
	@scripts/test.sh $(TESTS) $(ARGS)

test-fast: ## run the tests that need no Spark
	@$(PYTEST) -n auto --dist worksteal -m "not spark and not cluster and not interop and not torture" $(TESTS) $(ARGS)

test-spark: ## run the Spark tests with another version: SPARK=3.5, 4.0, 4.1 or 4.2
	@SPARK=$(SPARK) $(PYTEST) -n $(SPARK_PROCESSES) --dist worksteal \
		-m "(spark or cluster) and not same_on_every_line and not interop and not torture" $(TESTS) $(ARGS)

check: ## check lint, format, types, layers, and that generated pages are up to date
	@$(RUN) scripts/check.sh

format: ## format the sources and apply the linter's fixes
	@$(RUN) ruff format . && $(RUN) ruff check --fix .

docs: ## write docs/options.md and docs/errors.md from the code
	@$(RUN) python scripts/generate_docs.py

bench: ## run the benchmarks and compare them with their goals (BENCH_SCALE=0.1 for a short run)
	@BENCH_SCALE=$(or $(BENCH_SCALE),1) $(RUN) python -m benchmarks $(ARGS)

bench-peers: ## run the same work with Hudi, Iceberg, Delta and Paimon (PySpark 3.5, jars from Maven Central)
	@SPARK=3.5 $(RUN) python -m benchmarks.peers $(ARGS)

interop: ## test drawstring with Apache Hudi itself, in both directions (PySpark 3.5, jars from Maven Central)
	@SPARK=3.5 $(PYTEST) -n $(SPARK_PROCESSES) --dist loadfile -m interop tests/interop $(ARGS)

torture: ## run the long tests: file groups larger than memory, random histories, many writers
	@$(PYTEST) -m torture $(TESTS) $(ARGS)

wheel: ## build dist/*.whl with the compiled bridge inside
	@$(RUN) scripts/wheel.sh

lock: ## rewrite requirements/*.lock (needs uv)
	@scripts/lock.sh

clean: ## remove environments, caches and build results
	rm -rf .venv .venv-spark-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
