# Two commands: `make demo` and `make test`. Both create .venv on first use; see `make help`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
OUT ?= out/demo
# The reply cache and converted models live in the user's cache folder (RVT_RAY_CACHE).
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help demo test lint types pytest clean
help:
	@echo "make demo   build a small corpus from real video into $(OUT) and show it"
	@echo "make test   lint, types, import directions, every test"
	@echo "make lint | types | pytest   the parts of make test"
	@echo "make clean  remove .venv and out/"

$(READY): requirements/cpu.txt requirements/install_cpu.sh pyproject.toml
	$(PYTHON) -m venv .venv
	requirements/install_cpu.sh $(BIN)/python
	@touch $@

demo: $(READY)
	$(BIN)/python jobs/demo.py --out $(OUT)

test: lint types pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# Two at a time, a file's tests together, in order of name: sorted by number of tests the slowest, which stand alone, would
# come last, one worker idle. One thread each, or torch's threads of one wait in line for those of the other. What fails beside
# a busy neighbour is tried once more alone.
pytest: export OMP_NUM_THREADS = 1
pytest: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder || $(BIN)/python -m pytest --last-failed

clean:
	rm -rf .venv out
