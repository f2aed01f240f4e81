# make demo    regret curves of every policy on the paper's toy problem, into demo/
# make test    all tests
# make lint    formatting, linting and types
# make docs    the documentation, into docs/_build/html
# make bench   time of a step, its floor and their ratio for every policy, beside the committed ratios
# make bench-peers   decisions per second beside other bandit libraries, in an environment of its own
# make attack  fuzzers, races, kills and the exact referee of the brackets: most of an hour
# make reproduction   every experiment of the paper at its scale; figures and docs/reproduction.md from it
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format docs bench bench-peers attack reproduction clean

demo: .venv/run
	rm -rf demo
	$(BIN)/solid-bandits compare toy --policy solid --policy randucb --policy linucb --policy lints-paper --policy lints \
	    --policy greedy --horizon 50000 --runs 100 --seed 0 --out demo
	@echo "open demo/report.html in a browser, or look at demo/regret.png"

test: .venv/test
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "documentation in docs/_build/html/index.html"

bench: .venv/test
	$(BIN)/python benchmarks/bench

attack: .venv/test
	$(BIN)/python attacks/agents.py
	NUMBA_DISABLE_JIT=1 $(BIN)/python attacks/agents.py --constructors 0 --agents 5000 --files 0
	$(BIN)/python attacks/brackets.py
	$(BIN)/python attacks/files.py
	$(BIN)/python attacks/races.py
	$(BIN)/python attacks/kills.py

bench-peers: .venv-peers/ready
	.venv-peers/bin/python benchmarks/peers --table benchmarks/peers.md --figure docs/_static/peers.png

.venv-peers/ready: pyproject.toml benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -e . -r benchmarks/peers-requirements.txt
	@touch $@

# Goes on where it was interrupted; raw results stay out of the repository.
reproduction: .venv/run
	$(BIN)/solid-bandits reproduce all --scale paper --out reproduction/paper
	rm -rf docs/figures
	cp -r reproduction/paper/figures docs/figures
	cp reproduction/paper/report.md docs/reproduction.md

clean:
	rm -rf .venv .venv-peers demo docs/_build
	find src -name __pycache__ -prune -exec rm -rf {} +

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or newer is needed; name one with make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

# One stamp per set of requirements, so that the demo does not wait for what only tests need.
.venv/run: .venv/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/%: .venv/run pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	@touch $@
