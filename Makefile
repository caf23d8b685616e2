# make demo     watch a small team at work; no account is needed
# make cluster  watch a conversation on two nodes and two workers survive the death of a node; no account is needed
# make example  show the library at work
# make test     set up and run every test
# make check    the same with format, lint and types, and bench-quick: what CI runs
# make newest   try the newest releases of the agent CLIs, and say what they change for us
# make bench    measure, and write docs/benchmarks.md with its pictures
# make bench-quick  check that nothing became super-linear; under a minute
# make mutants  make small mistakes in the riskiest modules, one at a time, and see whether the tests notice
# make torture  do everything bad to it, very often, and write docs/reliability.md
# make pictures draw the pictures of the docs from real runs
# make docs     write the tables of the docs that come from the code
# make format   put the code into its form
# make lock     choose new versions of what the tests need

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A virtual environment; with what the package needs; with the package, and everything that the tests need.
MADE := $(VENV)/.made
CORE := $(VENV)/.core
READY := $(VENV)/.ready
# The command of this clone, as an editable install would leave it, without waiting for a build.
PROGRAM := $(BIN)/bullpen
# Compiled once, so that measurements of start-up see what a user sees.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: docs demo cluster example test newest torture mutants check lint format bench bench-quick pictures lock clean

demo: $(CORE) $(PROGRAM)
	@$(BIN)/bullpen demo

cluster: $(READY)
	@$(BIN)/python -m tests.store.postgres.install
	@$(BIN)/python examples/cluster_demo.py

example: $(CORE)
	@PYTHONPATH=src $(BIN)/python examples/first_prompt.py

test: $(READY)
	@$(BIN)/python tests/real_cli/install.py
	@$(BIN)/python -m tests.browser.install
	@$(BIN)/python -m tests.store.postgres.install
	$(BIN)/pytest --numprocesses logical --dist worksteal || { \
	  echo; echo "!!! What failed is tried once more, one after the other. What passes now depends on a busy machine: mend it."; \
	  $(BIN)/pytest --last-failed --last-failed-no-failures none; }

newest: $(READY)
	@BULLPEN_NEWEST=$(CURDIR)/.cache/newest $(BIN)/python -m tests.newest

check: lint test bench-quick

lint: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(READY)
	$(BIN)/python -m benchmarks

bench-quick: $(READY)
	$(BIN)/python -m benchmarks.growth_cases

mutants: $(READY)
	$(BIN)/python -m tests.mutants

torture: $(READY)
	$(BIN)/python -m tests.torture
	$(BIN)/pytest -m torture

pictures: $(READY)
	@$(BIN)/python tests/real_cli/install.py
	$(BIN)/python -m docs.pictures.draw
	$(BIN)/python -m docs.pictures.draw_web

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "bullpen needs Python 3.11 or newer, and $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@touch $@

$(CORE): pyproject.toml | $(MADE)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("$<", "rb"))["project"]["dependencies"], sep="\n")' > $@.new
	$(PIP) -r $@.new
	@mv $@.new $@

$(PROGRAM): | $(MADE)
	@echo '$(CURDIR)/src' > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/bullpen.pth"
	@sed 's/pip\._internal\.cli\.main/bullpen.cli/' $(BIN)/pip > $@.new
	@chmod +x $@.new && mv $@.new $@

$(READY): requirements.txt pyproject.toml | $(MADE)
	$(PIP) --no-deps --require-hashes -r requirements.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(CORE) $@

docs: $(READY)
	$(BIN)/python -m docs.tables

lock: $(READY)
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra all --extra cluster --extra telemetry --group dev pyproject.toml --output-file requirements.txt

clean:
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
