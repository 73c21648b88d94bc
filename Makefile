# Every target sets up what it needs: a machine with Python 3.11+ and make will do. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install install-pipeline up test test-long test-quick bench bench-pipeline lint docs lock clean

# A stamp's name holds a hash of all that its step depends on, so a second run is quick and a changed lock is seen.
# The folder counts too: an editable install points into it.
hash = $(shell { echo '$(CURDIR)'; cat $(1); } | sha256sum | cut -c1-16)
SERVER := .venv/.server-$(call hash,pyproject.toml requirements/server.txt)
PIPELINE := .venv/.pipeline-$(call hash,pyproject.toml requirements/server.txt requirements/pipeline.txt)
TESTS := .venv/.tests-$(call hash,pyproject.toml requirements/server.txt requirements/test.txt requirements/throttles.txt)

PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet
UV := uv==0.13.7
COMPILE := .venv/lock/bin/uv --quiet pip compile --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command 'make lock'

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS=$$'\t' read -r name what; do \
		printf '  make %-17s %s\n' "$$name" "$$what"; done

install: $(SERVER) ## .venv with the server alone
	@echo 'installed; start it with: .venv/bin/crossdock up'

install-pipeline: $(PIPELINE) ## and Spark, for crossdock pipeline (needs Java 17)
	@echo 'installed; see docs/how-to/pipeline.md'

up: $(SERVER) ## run the server; flags by ARGS='--data DIR …'
	@exec .venv/bin/crossdock up $(ARGS)

# First what only computes, then what waits, kills servers or starts Spark, and alone what counts seconds.
QUICK := not clients and not fault and not slow and not spark
PYTEST := .venv/bin/python -m pytest --durations=10

test: lint ## lint, then every test
	$(PYTEST) -n 3 --dist worksteal -m '$(QUICK)'
	$(PYTEST) -n 3 --dist loadfile -m 'not alone and not ($(QUICK))'
	$(PYTEST) -m alone

test-long: lint ## the same, with the random tests that try often trying far more often (an hour and more)
	CROSSDOCK_TEST_LONG=1 $(PYTEST) -n 2 --dist loadfile -m 'fault and not alone'

test-quick: $(TESTS) ## no foreign clients, no kills and full disks, nothing slow, fewer examples
	$(PYTEST) -n 3 --dist worksteal --hypothesis-profile quick -m '$(QUICK)'

lint: $(TESTS) ## ruff and mypy
	.venv/bin/ruff check .
	.venv/bin/ruff format --check --quiet .
	.venv/bin/mypy

bench: $(TESTS) ## load figures; DOOR=faktory|workq|masenko|qless|resqu AGAINST=faktory://…, redis://…; ARGS=--lake
	.venv/bin/python -m bench.run $(if $(DOOR),--door '$(DOOR)') $(if $(AGAINST),--against '$(AGAINST)') \
		$(if $(SCRIPT),--script '$(SCRIPT)') $(ARGS)

bench-pipeline: $(TESTS) ## Spark over made-up lakes of 5 and 20 million events, DuckDB beside it; ARGS='--millions 1'
	.venv/bin/python -m bench.pipeline.run $(ARGS)

docs: $(SERVER) ## write docs/reference/settings.md from the settings
	.venv/bin/python -m crossdock.settings.reference docs/reference/settings.md

lock: $(SERVER) ## choose the newest dependencies and write requirements/*.txt
	test -d .venv/lock || .venv/bin/python -m venv .venv/lock
	.venv/lock/bin/python -m pip --disable-pip-version-check --quiet install '$(UV)'
	$(COMPILE) --upgrade pyproject.toml requirements/build.in -o requirements/server.txt > /dev/null
	$(COMPILE) --upgrade --extra pipeline -c requirements/server.txt pyproject.toml -o requirements/pipeline.txt > /dev/null
	$(COMPILE) --upgrade --extra test --extra pipeline -c requirements/server.txt -c requirements/pipeline.txt \
		pyproject.toml -o requirements/test.txt > /dev/null

clean: ## remove .venv and caches; data stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis src/crossdock.egg-info

$(SERVER):
	@for python in $(PYTHON) python3.13 python3.12 python3.11 python3 ''; do \
		if [ -n "$$python" ] && "$$python" -c \
			'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; then break; fi; done; \
	if [ -z "$$python" ]; then \
		echo 'Crossdock needs Python 3.11 or newer with venv; none was found. Install it (Debian: apt-get install' \
			'python3 python3-venv), or name one: make PYTHON=/path/to/python3.' >&2; exit 1; fi; \
	if ! .venv/bin/python -c 'import pip' > /dev/null 2>&1; then \
		echo "creating .venv with $$("$$python" --version)"; "$$python" -m venv --clear .venv; fi
	@echo 'installing the server: requirements/server.txt'
	@$(PIP) install --require-hashes -r requirements/server.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@rm -f .venv/.server-* .venv/.pipeline-* .venv/.tests-*
	@touch $@

$(PIPELINE): $(SERVER)
	@echo 'installing what the pipeline needs: requirements/pipeline.txt'
	@$(PIP) install --require-hashes -r requirements/pipeline.txt
	@rm -f .venv/.pipeline-*
	@touch $@

$(TESTS): $(SERVER)
	@echo 'installing what the tests need: requirements/test.txt'
	@$(PIP) install --require-hashes -r requirements/test.txt
	@$(PIP) install --require-hashes --no-deps --upgrade --target .venv/throttles -r requirements/throttles.txt
	@rm -f .venv/.tests-*
	@touch $@
