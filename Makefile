# Developer commands. Run `make` without a target to list them.
.DEFAULT_GOAL := help

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
JOBS  := 2

.PHONY: help setup java demo test test-full check bench bench-startup bench-requests bench-peers bench-pipeline bench-engines bench-scale bench-growth bench-memory bench-mutate bench-merge bench-server bench-slow-clients docs dist tables clean

help: ## List all targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: java ## Install the package, the developer tools and Java into .venv; quick if .venv is up to date
	@echo "Ready: $(BIN)/omnigraph"

# The stamp file is updated when the dependencies change. Spark Connect is not installed, because it requires pandas,
# and importing pyarrow.dataset (and therefore lance) takes twice as long if pandas is installed.
$(READY): pyproject.toml constraints.txt scripts/find_python.sh
	@python="$$(sh scripts/find_python.sh)" && { [ -x $(BIN)/python ] || "$$python" -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,spark]'
	@touch $@

# Java for Spark: use the installed version, or install one into .venv.
java: $(READY)
	@$(BIN)/python scripts/java.py $(VENV)

demo: java ## Demonstrate the main features with examples/library
	@BIN=$(BIN) bash scripts/demo.sh

test: java ## Run the default tests and the doctests
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -q

# The number of programs, histories and crashes in the long tests, as a multiple of the default number.
DEPTH := 0.5

test-full: java ## Run all tests, including the slow ones, with more examples per property; DEPTH=1 for twice as many
	HYPOTHESIS_PROFILE=full OMNIGRAPH_TEST_DEPTH=$(DEPTH) $(BIN)/pytest -n $(JOBS) --dist loadgroup -q -m "" --timeout 900

check: $(READY) ## Check the formatting, lint rules, types, import layers and dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry omnigraph

SCALE := 0.02

PEERS = $(BIN)/python -c 'import duckdb, ladybug' 2>/dev/null || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'

bench: java ## Compare Omnigraph with Ladybug, DuckDB, plain Lance, plain Spark and recorded reference figures; SCALE=1 for ten million edges
	@$(PEERS)
	$(BIN)/python -m bench.table --scale $(SCALE)

bench-startup: $(READY) ## Measure the duration of commands in a new process, and of each step
	$(BIN)/python -m bench.startup

bench-requests: $(READY) ## Count the S3 requests that each operation makes, and measure the durations
	$(BIN)/python -m bench.requests 100

bench-peers: $(READY) ## Compare queries with Ladybug and DuckDB; SCALE=1 for ten million edges
	@$(PEERS)
	$(BIN)/python -m bench.peers --scale $(SCALE)

PAPERS := 20000

bench-pipeline: $(READY) ## Compare loads and exports on Spark with plain Spark; PAPERS=1000000 for ten million edges
	@$(PEERS)
	$(BIN)/python -m bench.pipeline --papers $(PAPERS)

bench-engines: $(READY) ## Compare local loads with loads on Spark, and find the size above which Spark is faster; PAPERS=400000 for 460 MB
	$(BIN)/python -m bench.engines --papers $(PAPERS)

EDGES := 1000000

bench-scale: $(READY) ## Measure the time and memory of loads and exports; EDGES="1000000 10000000 100000000" for several sizes
	$(BIN)/python -m bench.scale $(EDGES) --best-of 3

COMMITS := 1000

bench-growth: $(READY) ## Measure the effect of many small writes on sizes and times; COMMITS=10000 for the complete table
	$(BIN)/python -m bench.growth $(COMMITS)

bench-memory: $(READY) ## Measure the memory of a long-running writer, reader and change feed; COMMITS=100000 for a long run
	$(BIN)/python -m bench.memory $(COMMITS)

bench-mutate: $(READY) ## Compare single-row writes with the same work in plain Lance
	$(BIN)/python -m bench.mutate

MERGE :=

bench-merge: $(READY) ## Measure the cost of merges into targets of several sizes; MERGE=--whole for ten million rows
	$(BIN)/python -m bench.merge $(MERGE)

REQUESTS := 2000

bench-server: $(READY) ## Compare the HTTP server with embedded calls and a minimal Starlette application
	$(BIN)/python -m bench.server $(REQUESTS)

bench-slow-clients: $(READY) ## Measure lookups while a thousand other connections are slow, idle or incomplete
	$(BIN)/python -m bench.slow_clients $(REQUESTS)

docs: $(READY) ## Regenerate the reference pages and check all links
	$(BIN)/python -m scripts.make_docs

dist: $(READY) ## Build the wheel in dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist

tables: $(READY) ## Regenerate the parser tables from the grammars
	$(BIN)/python -m omnigraph.lang.saved_parsers

clean: ## Remove all generated files except .venv
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find omnigraph tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
