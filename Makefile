# Needs Python 3.11 or later with venv, and make. `make` alone lists what there is to do.
# Another interpreter: `make PYTHON=python3.12 test` (run `make clean` first if .venv exists).

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
FLOWER_VENV := .venv-flower
ORACLES_VENV := .venv-oracles
JOBS ?= 2
MUTANTS ?= 1000
CASES ?= 10000
BENCHMARKS ?= samplers counts imports means accuracy_speed interval_shares verified_widths quantile_speed quantile_errors quantile_grid ledger_speed release_speed lab_speed engine_speed anonymity_speed

BIN := $(VENV)/bin
PIP_INSTALL := -m pip install -q --disable-pip-version-check

# The environment variables pin what builds the package too; which of the two counts depends on pip's age.
install = PIP_CONSTRAINT=$(2) PIP_BUILD_CONSTRAINT=$(2) $(1)/bin/python $(PIP_INSTALL) -c $(2)
INSTALL := $(call install,$(VENV),constraints.txt)

.DEFAULT_GOAL := help
.PHONY: help demo films errata gallery gallery-quick audit test test-slow test-spark test-flower test-oracles check format lint types layers doctests bench bench-quick bench-engines coverage widths faults fuzz mutation mutation-quick clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F '\t' '{ printf "  make %-14s %s\n", $$1, $$2 }'

demo: $(VENV)/.demo  ## Release statistics of 50,000 fictional people under one budget, with a report to open
	@$(BIN)/sfumato demo -o build/demo

films: $(VENV)/.demo  ## Recommend a film privately, beside the forms that go wrong
	@$(BIN)/python examples/films/recommend.py

errata: $(VENV)/.demo  ## Compute the numbers of all errata again and write docs/errata.md
	@$(BIN)/python -m sfumato.lab.errata > docs/errata.md.new
	@mv docs/errata.md.new docs/errata.md

gallery: $(VENV)/.demo  ## Draw all figures of the laboratory and write build/gallery; fails if a statement fails (takes minutes)
	@$(BIN)/sfumato lab all -o build/gallery --jobs $(JOBS)

gallery-quick: $(VENV)/.demo  ## The same with a tenth of the draws, in minutes
	@$(BIN)/sfumato lab all -o build/gallery-quick --quick --jobs $(JOBS)

audit: $(VENV)/.demo  ## Audit everything that is shipped, on all small neighbouring data sets
	@$(BIN)/sfumato audit --jobs $(JOBS)

test: $(VENV)/.dev  ## Run the test suite
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests -n $(JOBS) --dist worksteal -m "not slow and not spark and not flower and not oracles"

test-slow: $(VENV)/.dev  ## Run the tests that take long: coverage of intervals, audits with approximate budgets
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests -n $(JOBS) --dist worksteal -m "slow and not spark and not flower and not oracles"

test-spark: $(VENV)/.dev  ## Run the tests on Spark, in the process and by Connect (needs Java 17)
	@# A process for each file: one that has a session of Spark cannot open one by Connect. Status 5 is no test.
	@set -e; for file in $$(grep -rl spark tests --include='test_*.py'); do \
	    $(BIN)/python -m pytest -q $$file -m "spark and not slow" || [ $$? -eq 5 ]; done

test-flower: $(FLOWER_VENV)/.flower  ## Run the tests with Flower, whole federations on one machine among them (an environment of its own)
	@FLWR_TELEMETRY_ENABLED=0 RAY_USAGE_STATS_ENABLED=0 $(FLOWER_VENV)/bin/python -m pytest tests/federated -m flower

test-oracles: $(ORACLES_VENV)/.oracles  ## Compare anonymity with what other programs measure and make (an environment of its own)
	@$(ORACLES_VENV)/bin/python -m pytest tests/anonymity -m oracles

faults: $(VENV)/.dev  ## Kill, crowd and damage ledgers, on SQLite and PostgreSQL; fails at a lost or doubled charge (takes long)
	@$(BIN)/python tests/faults/campaign.py --kills 500 --jobs $(JOBS)

fuzz: $(VENV)/.dev  ## Draw hostile neighbouring tables and try to tell them apart; fails if anything does (takes long)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz/campaign.py --cases $(CASES) --jobs $(JOBS)

mutation: $(VENV)/.mutation  ## Try small changes to laws, privacy and mechanisms; fails if the tests miss too many
	@$(BIN)/python tests/mutation.py --mutants $(MUTANTS) --jobs $(JOBS)

mutation-quick: $(VENV)/.mutation  ## Try a few changes to the exact coins
	@$(BIN)/python tests/mutation.py --quick --jobs $(JOBS)

check: lint types layers doctests  ## Check format, lint, types, import layers and doctests

format: $(VENV)/.dev  ## Format the code and fix what the linter can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(VENV)/.dev  ## Check the format and lint
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: $(VENV)/.dev  ## Check the types
	@$(BIN)/mypy

layers: $(VENV)/.dev  ## Check that imports point downwards
	@$(BIN)/lint-imports

doctests: $(VENV)/.dev  ## Run the examples in docstrings
	@XDG_STATE_HOME=$(CURDIR)/build/state $(BIN)/python -m pytest --doctest-modules src/sfumato

bench: $(BENCH_VENV)/.bench  ## Time sfumato beside its peers (an environment of its own); fails if a goal is missed
	@missed=0; for name in $(BENCHMARKS); do $(BENCH_VENV)/bin/python benchmarks/$$name.py || missed=1; done; exit $$missed

bench-quick: $(VENV)/.dev  ## Run every benchmark on small sizes, without the peers
	@set -e; for name in $(BENCHMARKS) coverage; do $(BIN)/python benchmarks/$$name.py --quick; done

bench-engines: $(VENV)/.dev  ## Time Polars, DuckDB and Spark beside their own quantiles, and measure memory; fails if a goal is missed
	@$(BIN)/python benchmarks/engine_speed.py

coverage: $(VENV)/.dev  ## Count how often intervals hold on heaps, gaps, constants and skewed data; fails if one does not (takes long)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/coverage.py --jobs $(JOBS)

widths: $(VENV)/.dev  ## Compare the widths of intervals with the best ones; fails if a goal is missed (takes long)
	@$(BIN)/python benchmarks/interval_widths.py --jobs $(JOBS)

clean:  ## Remove the environments, caches and builds
	rm -rf $(VENV) $(BENCH_VENV) $(FLOWER_VENV) $(ORACLES_VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is made once, and installed into again only when the pins or the package's needs change.

$(VENV)/.made $(BENCH_VENV)/.made $(FLOWER_VENV)/.made $(ORACLES_VENV)/.made:
	@$(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo "$(PYTHON) must be Python 3.11 or later with venv; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv --clear $(@D)
	@touch $@

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "installing sfumato into $(VENV)"
	@$(INSTALL) -e '.[fast,accounting,charts]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "installing sfumato with its test and check tools into $(VENV)"
	@$(INSTALL) -e '.[test,check]'
	@touch $@

$(VENV)/.mutation: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "installing sfumato with its tests and mutmut into $(VENV)"
	@$(INSTALL) -e '.[mutation]'
	@touch $@

$(BENCH_VENV)/.bench: pyproject.toml constraints-bench.txt | $(BENCH_VENV)/.made
	@echo "installing sfumato and its peers into $(BENCH_VENV)"
	@$(call install,$(BENCH_VENV),constraints-bench.txt) -e '.[bench]'
	@touch $@

$(FLOWER_VENV)/.flower: pyproject.toml constraints-flower.txt | $(FLOWER_VENV)/.made
	@echo "installing sfumato and Flower into $(FLOWER_VENV)"
	@$(call install,$(FLOWER_VENV),constraints-flower.txt) -e '.[test-flower]'
	@touch $@

$(ORACLES_VENV)/.oracles: pyproject.toml constraints-oracles.txt | $(ORACLES_VENV)/.made
	@echo "installing sfumato, pycanon and anjana into $(ORACLES_VENV)"
	@$(call install,$(ORACLES_VENV),constraints-oracles.txt) -e '.[test-oracles]'
	@touch $@
