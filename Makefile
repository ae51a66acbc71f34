# Every command of the project. `make` alone lists them.
.DEFAULT_GOAL := help

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
JOBS  := 2

.PHONY: help setup java demo test test-full check bench bench-startup bench-requests bench-peers bench-pipeline bench-engines bench-scale bench-growth bench-memory bench-mutate bench-merge bench-server bench-slow-clients docs dist tables clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: java ## Make .venv with the package, the developer tools and a Java; run again, it is quick
	@echo "Ready: $(BIN)/omnigraph"

# The stamp is redone when the dependencies change. Spark Connect is not installed here: it brings
# pandas, and with pandas around every import of pyarrow.dataset, hence of lance, takes twice as long.
$(READY): pyproject.toml constraints.txt scripts/find_python.sh
	@python="$$(sh scripts/find_python.sh)" && { [ -x $(BIN)/python ] || "$$python" -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,spark]'
	@touch $@

# A Java for Spark: the one of this machine, else one that is put into .venv.
java: $(READY)
	@$(BIN)/python scripts/java.py $(VENV)

demo: java ## Show what works today, on the example in examples/library
	@BIN=$(BIN) bash scripts/demo.sh

test: java ## Run the tests and the doctests
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -q

# How many programs, histories and kills the long tests run, as a multiple of their normal number.
DEPTH := 0.5

test-full: java ## Run everything: also the slow tests, and more examples per property
	HYPOTHESIS_PROFILE=full OMNIGRAPH_TEST_DEPTH=$(DEPTH) $(BIN)/pytest -n $(JOBS) --dist loadgroup -q -m "" --timeout 900

check: $(READY) ## Format, lint, types, layers, dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry omnigraph

SCALE := 0.02

PEERS = $(BIN)/python -c 'import duckdb, ladybug' 2>/dev/null || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'

bench: java ## Print one table: ours beside the reference, Ladybug, DuckDB, plain Lance and plain Spark; SCALE=1 for more
	@$(PEERS)
	$(BIN)/python -m bench.table --scale $(SCALE)

bench-startup: $(READY) ## How long commands take in a new process, and the parts of that time
	$(BIN)/python -m bench.startup

bench-requests: $(READY) ## Count the requests of each operation to S3, and measure how long they take
	$(BIN)/python -m bench.requests 100

bench-peers: $(READY) ## Compare with Ladybug and DuckDB; SCALE=1 for ten million edges
	@$(PEERS)
	$(BIN)/python -m bench.peers --scale $(SCALE)

PAPERS := 20000

bench-pipeline: $(READY) ## Loads and exports on Spark beside plain Spark; PAPERS=1000000 for ten million edges
	@$(PEERS)
	$(BIN)/python -m bench.pipeline --papers $(PAPERS)

bench-engines: $(READY) ## Loads in this process beside Spark, and from which size Spark is faster; PAPERS=400000 for 460 MB
	$(BIN)/python -m bench.engines --papers $(PAPERS)

EDGES := 1000000

bench-scale: $(READY) ## Seconds and memory of loads and exports; EDGES="1000000 10000000 100000000" for the curve
	$(BIN)/python -m bench.scale $(EDGES) --best-of 3

COMMITS := 1000

bench-growth: $(READY) ## What many small writes leave behind; COMMITS=10000 for the whole table
	$(BIN)/python -m bench.growth $(COMMITS)

bench-memory: $(READY) ## Memory of a writer, a reader and a feed that run for long; COMMITS=100000 for the long run
	$(BIN)/python -m bench.memory $(COMMITS)

bench-mutate: $(READY) ## Writes of one row beside the bare work of Lance
	$(BIN)/python -m bench.mutate

MERGE :=

bench-merge: $(READY) ## What merges cost beside the size of their target; MERGE=--whole for ten million rows
	$(BIN)/python -m bench.merge $(MERGE)

REQUESTS := 2000

bench-server: $(READY) ## The HTTP server beside the embedded call and a bare Starlette application
	$(BIN)/python -m bench.server $(REQUESTS)

bench-slow-clients: $(READY) ## Latency of lookups beside a thousand slow, idle and incomplete connections
	$(BIN)/python -m bench.slow_clients $(REQUESTS)

docs: $(READY) ## Regenerate the reference pages and check every link
	$(BIN)/python -m scripts.make_docs

dist: $(READY) ## Build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist

tables: $(READY) ## Regenerate the parser tables from the grammars
	$(BIN)/python -m omnigraph.lang.saved_parsers

clean: ## Remove what the other targets made, except .venv
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find omnigraph tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
