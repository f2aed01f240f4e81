# make demo    regret curves of every policy on the paper's toy problem, into demo/
# make check   formatting, linting, types and the fast tests: before a commit
# make test    all tests but the long ones
# make test-long   sampling studies, attacks, and what needs the network: before a release
# make coverage   lines that are reached, those of compiled code too: small attacks and a part of the tests, without the compiler
# make lint    formatting, linting and types
# make docs    the documentation, into docs/_build/html
# make bench   time of a step, its floor and their ratio for every policy, beside the committed ratios
# make bench-peers   decisions per second beside other bandit libraries, in an environment of its own
# make bakeoff   classification sets as bandits, ours and others, in an environment of its own: goes on for an hour from
#                where it stopped, then writes the tables of docs/bakeoff.md
# make bench-streams a million rounds of a stream: seconds and memory of each policy, beside other libraries
# make service-demo  the decision service with synthetic traffic and its page, until Ctrl-C
# make attack  fuzzers, races, kills and the exact referee of the brackets: about an hour of an idle machine
# make attack-hour  an hour of mixed load on the service: memory, files and times at its end
# make reproduction   every experiment of the paper at its scale; figures and docs/reproduction.md from it
# make pages   the latter alone, from results that are there (RESULTS=DIR)
PYTHON ?= python3
BIN := .venv/bin
LINT := .venv-lint/bin
FAST := tests/simulation tests/statistics tests/live tests/logs tests/report tests/cli/test_commands.py \
    tests/cli/test_report_any.py $(patsubst %,tests/estimation/test_%.py,gram triangular vectors) \
    $(patsubst %,tests/internal/test_%.py,bar check words) $(patsubst %,tests/test_%.py,extras imports platforms)
COVERED := $(patsubst %,tests/estimation/test_%.py,gram triangular vectors) tests/logs tests/statistics
RESULTS ?= reproduction/paper

define NEW_ENOUGH
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or newer is needed; name one with make PYTHON=python3.12 ..."; exit 1; }
endef

.PHONY: demo service-demo check test test-long coverage lint format docs bench bench-peers bench-streams bakeoff attack attack-hour reproduction pages clean

demo: .venv/run
	rm -rf demo
	$(BIN)/solid-bandits compare toy --policy solid --policy randucb --policy linucb-paper --policy lints-paper --policy lints \
	    --policy greedy --horizon 50000 --runs 100 --seed 0 --out demo
	@echo "open demo/report.html in a browser, or look at demo/regret.png"

check: lint .venv/test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(FAST)

service-demo: .venv/service
	$(BIN)/python -m solid_bandits.service.demo

test: .venv/test
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-long: .venv/test
	$(BIN)/python -m pytest -n 2 --dist worksteal --long

# The kernels as Python functions: slow, and the only way in which their lines can be seen to run.
coverage: .venv/test
	rm -f .coverage
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run --source=solid_bandits attacks/agents.py --constructors 300 --agents 100 --files 50
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -a --source=solid_bandits attacks/arguments.py --every 7
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(COVERED) \
	    --cov=solid_bandits --cov-append --cov-report=term:skip-covered --cov-report=html:.coverage-html

lint: .venv-lint/ready
	$(LINT)/ruff format --check .
	$(LINT)/ruff check .
	$(LINT)/mypy

format: .venv-lint/ready
	$(LINT)/ruff check --fix .
	$(LINT)/ruff format .

docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "documentation in docs/_build/html/index.html"

bench: .venv/test
	$(BIN)/python benchmarks/bench

attack: .venv/test
	$(BIN)/python attacks/arguments.py
	$(BIN)/python attacks/agents.py
	NUMBA_DISABLE_JIT=1 $(BIN)/python attacks/agents.py --constructors 0 --agents 5000 --files 0
	$(BIN)/python attacks/brackets.py
	$(BIN)/python attacks/files.py
	$(BIN)/python attacks/races.py
	$(BIN)/python attacks/homeless.py
	$(BIN)/python attacks/kills.py
	$(BIN)/python attacks/store.py
	$(BIN)/python attacks/service.py
	$(BIN)/python attacks/service_connections.py
	$(BIN)/python attacks/service_fairness.py
	$(BIN)/python attacks/service_nodes.py

attack-hour: .venv/test
	$(BIN)/python attacks/service_hour.py

bench-peers: .venv-peers/ready
	.venv-peers/bin/python benchmarks/peers --table benchmarks/peers.md --figure docs/_static/peers.png

bench-streams: .venv-peers/ready
	.venv-peers/bin/python benchmarks/streams.py --peers .venv-peers/bin/python --out benchmarks/streams.md

bakeoff: .venv-bakeoff/ready
	.venv-bakeoff/bin/python benchmarks/bakeoff --minutes 60
	.venv-bakeoff/bin/python benchmarks/bakeoff --table

.venv-bakeoff/ready: pyproject.toml benchmarks/bakeoff/requirements.txt
	$(PYTHON) -m venv .venv-bakeoff
	.venv-bakeoff/bin/python -m pip install --quiet --disable-pip-version-check -e '.[plot]' -r benchmarks/bakeoff/requirements.txt
	@touch $@

.venv-peers/ready: pyproject.toml benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -e '.[all]' -r benchmarks/peers-requirements.txt
	@touch $@

# Goes on where it was interrupted; raw results stay out of the repository.
reproduction: .venv/run
	$(BIN)/solid-bandits reproduce all --scale paper --out $(RESULTS)
	$(MAKE) pages

# What the documentation shows of results that are there; Jester's runs are those of studies/jester/runs.jsonl.
pages: .venv/run
	$(BIN)/solid-bandits report $(RESULTS)
	rm -rf docs/figures
	cp -r $(RESULTS)/figures docs/figures
	$(BIN)/python studies/jester/judge.py
	$(BIN)/python studies/optimism/table.py
	$(BIN)/python studies/optimism/figure.py
	$(BIN)/python studies/jester/page.py $(RESULTS)
	$(BIN)/python studies/asymptotics/inside.py $(RESULTS)
	$(BIN)/python studies/shrink.py docs/figures docs/_static/jester-full.png docs/_static/asymptotics-inside.png

clean:
	rm -rf .venv .venv-lint .venv-peers .venv-bakeoff .coverage .coverage-html demo docs/_build
	find src -name __pycache__ -prune -exec rm -rf {} +

.venv/python:
	$(NEW_ENOUGH)
	$(PYTHON) -m venv .venv
	@touch $@

# Exactly these versions of the tools and of the types they read.
.venv-lint/ready: .ci/lint.txt
	$(NEW_ENOUGH)
	$(PYTHON) -m venv .venv-lint
	$(LINT)/python -m pip install --quiet --disable-pip-version-check --no-deps -r .ci/lint.txt
	@touch $@

# One stamp per set of requirements, so that the demo does not wait for what only tests need.
.venv/run: .venv/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	@touch $@

.venv/%: .venv/run pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	@touch $@
