# make demo      watch a small team at work; no account is needed
# make cluster   watch a conversation on two nodes and two workers survive the death of a node; no account is needed
# make example   show the library at work
# make test      set up and test everything that is ours, in minutes; ARGS="-k reviews" goes to pytest
# make test-all  test what that leaves out: genuine CLIs, browsers, PostgreSQL, deploy files, torture at its small size
# make package   build the wheel and the source distribution, and check them with every Python; nothing is published
# make watch     test what a change touches, whenever a file is saved
# make lint      format, lint and types
# make newest    try the newest releases of the agent CLIs, and say what they change for us
# make bench     measure, and write docs/benchmarks.md with its pictures
# make bench-quick  check that nothing became super-linear; under a minute
# make mutants   make small mistakes in the riskiest modules, one at a time, and see whether the tests notice
# make torture   do everything bad to it, very often, and write docs/reliability.md
# make pictures  draw the pictures of the docs from real runs
# make docs      write the tables of the docs that come from the code
# make format    put the code into its form
# make lock      choose new versions of what the tests need

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A virtual environment; with what the package needs; with what `make test` needs; with what everything else here needs.
MADE := $(VENV)/.made
CORE := $(VENV)/.core
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
# The command of this clone, as an editable install would leave it, without waiting for a build.
PROGRAM := $(BIN)/bullpen
AT_ONCE := --numprocesses auto --dist worksteal
# Compiled once, so that measurements of start-up see what a user sees.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: docs demo cluster example test test-all package watch newest torture mutants lint format bench bench-quick pictures lock clean

demo: $(CORE) $(PROGRAM)
	@$(BIN)/bullpen demo

cluster: $(READY)
	@$(BIN)/python -m tests.store.postgres.install
	@$(BIN)/python examples/cluster_demo.py

example: $(CORE)
	@PYTHONPATH=src $(BIN)/python examples/first_prompt.py

test: $(READY)
	@$(BIN)/pytest -q $(AT_ONCE) -m "not foreign and not torture" $(ARGS)

test-all: $(TOOLS)
	@$(BIN)/python tests/agents/real_cli/install.py
	@$(BIN)/python -m tests.web.browser.install
	@$(BIN)/python -m tests.store.postgres.install
	@$(BIN)/python -m tests.sandbox.install
	@$(BIN)/pytest -q $(AT_ONCE) -m "foreign and not torture" tests proofs $(ARGS)
	@$(BIN)/python -m benchmarks.growth_cases
	@$(BIN)/python -m tests.other_pythons
	@$(BIN)/python -m tests.package
	@$(BIN)/python -m proofs.missing

package: $(READY)
	@$(BIN)/python -m tests.package

watch: $(READY)
	@$(BIN)/python -m tests.watch

newest: $(TOOLS)
	@BULLPEN_NEWEST=$(CURDIR)/.cache/newest $(BIN)/python -m proofs.newest

lint: $(TOOLS)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(TOOLS)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(TOOLS)
	$(BIN)/python -m benchmarks

bench-quick: $(READY)
	$(BIN)/python -m benchmarks.growth_cases

mutants: $(READY)
	$(BIN)/python -m proofs.mutants

torture: $(TOOLS)
	$(BIN)/python -m proofs.torture
	$(BIN)/pytest -m torture tests proofs

pictures: $(TOOLS)
	@$(BIN)/python tests/agents/real_cli/install.py
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

$(TOOLS): requirements-tools.txt $(READY)
	$(PIP) --no-deps --require-hashes -r requirements-tools.txt
	@touch $@

docs: $(READY)
	$(BIN)/python -m docs.tables

# The second file holds only what the first lacks.
lock: $(READY)
	$(PIP) uv
	$(BIN)/python -m tests.lock

clean:
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
