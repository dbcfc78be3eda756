# Each target makes the virtual environment it needs from constraints.txt, and reuses it afterwards.

PYTHON ?= python3
BIN := .venv/bin
BENCH := .venv-bench/bin

.PHONY: setup demo test check reference bench results drift crash lock clean

setup: .venv/ready

# Enough for the demonstration; the tools of development join it when they are needed.
.venv/demo-ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,plots]"
	@touch $@

.venv/ready: .venv/demo-ready
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

.venv-bench/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bench
	$(BENCH)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,bench,dask,images]"
	@touch $@

demo: .venv/demo-ready   ## the main job on scikit-learn's digits
	$(BIN)/knowmore demo

test: .venv/ready        ## the fast tests: every law, unit and example, in a few minutes
	$(BIN)/pytest

check: .venv/ready       ## format, lint, types, import layers, all tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --slow

reference: .venv/ready   ## write docs/reference.md from the docstrings, docs/commands.md from the program
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_commands.py

bench: .venv-bench/ready ## benchmarks as ratios, against peers and the machine's limit
	$(BENCH)/python -m benchmarks

# Through a temporary file: a report that fails must not leave an empty page.
results: .venv/ready     ## write docs/results.md from benchmarks/measured.json
	$(BIN)/python -m benchmarks.report benchmarks/measured.json --earlier benchmarks/earlier.md > docs/results.md.new
	mv docs/results.md.new docs/results.md

drift: .venv/ready       ## how far 100,000 edits lead from the batch fit
	$(BIN)/python -m benchmarks.drift

crash: .venv/ready       ## kills, failing disks, damaged and hostile files, many processes at once
	$(BIN)/python -m benchmarks.crash

# What torch brings for GPUs is left out: torch itself pins it, and only where there may be one.
lock:                    ## pin the dependencies again
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet -e ".[dev,bench]"
	.venv-lock/bin/pip freeze --exclude-editable | sed -E 's/\+cpu$$//; /^(cuda|nvidia)-|^triton=/d' > constraints.txt
	rm -rf .venv-lock

clean:
	rm -rf .venv .venv-bench results
