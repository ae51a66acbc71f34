# Every command of the project. `make` alone lists them.
.DEFAULT_GOAL := help

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## Make .venv with the package and the developer tools; done again, it is quick
	@echo "ready: $(BIN)/omnigraph"

# The stamp is redone when the dependencies change. Spark is not installed here: its distribution
# is several hundred megabytes and nothing uses it yet. It will join as `.[dev,spark]`.
$(READY): pyproject.toml constraints.txt scripts/find_python.sh
	@python="$$(sh scripts/find_python.sh)" && { [ -x $(BIN)/python ] || "$$python" -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
