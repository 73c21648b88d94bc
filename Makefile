# Each target first installs what it needs into .venv. The machine needs Python 3.11 or newer and make. `make help` lists
# the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install install-pipeline up demo test test-long test-quick coverage lint bench bench-pipeline bench-worker docs pictures build lock \
	clean

# The name of a stamp file contains a hash of everything its step depends on. A second run is quick, and a changed lock file
# makes the step run again. The hash covers the folder's path, because an editable install points into it.
hash = $(shell { echo '$(CURDIR)'; cat $(1); } | sha256sum | cut -c1-16)
SERVER := .venv/.server-$(call hash,pyproject.toml requirements/server.txt)
PIPELINE := .venv/.pipeline-$(call hash,pyproject.toml requirements/server.txt requirements/pipeline.txt)
TESTS := .venv/.tests-$(call hash,pyproject.toml requirements/server.txt requirements/test.txt requirements/throttles.txt)
DOCS := .venv/.docs-$(call hash,pyproject.toml requirements/server.txt requirements/docs.txt)
RELEASE := .venv/.release-$(call hash,pyproject.toml requirements/server.txt requirements/release.txt)

PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet
UV := uv==0.13.7
UPGRADE := --upgrade
COMPILE := .venv/lock/bin/uv --quiet pip compile --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command 'make lock' $(UPGRADE)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS=$$'\t' read -r name what; do \
		printf '  make %-17s %s\n' "$$name" "$$what"; done

install: $(SERVER) ## install the server into .venv
	@echo 'installed; start the server with: .venv/bin/crossdock up'

install-pipeline: $(PIPELINE) ## install the server and Spark, for crossdock pipeline (needs Java 17)
	@echo 'installed; see docs/how-to/pipeline.md'

up: $(SERVER) ## run the server; pass flags with ARGS='--data DIR'
	@exec .venv/bin/crossdock up $(ARGS)

demo: $(SERVER) ## run a server with jobs of every state through all protocols, in a temporary folder
	@exec .venv/bin/crossdock demo

# The quick group only computes. The other tests wait, kill servers or start Spark. Tests marked `alone` measure seconds, so
# they run last and one at a time.
QUICK := not clients and not fault and not slow and not spark
PYTEST := .venv/bin/python -m pytest --durations=10

test: lint $(DOCS) ## run the linters and every test
	$(PYTEST) -n 3 --dist worksteal -m '$(QUICK)'
	$(PYTEST) -n 3 --dist loadfile -m 'not alone and not ($(QUICK))'
	$(PYTEST) -m alone

test-long: lint ## run the random fault tests with many more examples (over an hour)
	CROSSDOCK_TEST_LONG=1 $(PYTEST) -n 2 --dist loadfile -m 'fault and not alone'

test-quick: $(TESTS) ## run the tests without other programs, faults, Spark and slow tests (three minutes)
	$(PYTEST) -n 3 --dist worksteal --hypothesis-profile quick -m '$(QUICK)'

# Tests that measure seconds are left out: measuring coverage makes everything slower.
COVER := not alone
coverage: $(TESTS) ## measure branch coverage of src, at least 90 %; choose tests with COVER='not alone and not spark'
	$(PYTEST) -n 3 --dist loadfile --cov --cov-report=term:skip-covered --cov-report=xml --cov-report=html -m '$(COVER)'

lint: $(TESTS) ## run ruff and mypy
	.venv/bin/ruff check .
	.venv/bin/ruff format --check --quiet .
	.venv/bin/mypy

bench: $(TESTS) ## measure the load; PROTOCOL=faktory|workq|masenko|qless|resqu AGAINST=redis://HOST:PORT ARGS=--lake
	.venv/bin/python -m bench.run $(if $(PROTOCOL),--protocol '$(PROTOCOL)') $(if $(AGAINST),--against '$(AGAINST)') \
		$(if $(SCRIPT),--script '$(SCRIPT)') $(ARGS)

bench-pipeline: $(TESTS) ## measure Spark and DuckDB over generated lakes of 5 and 20 million events; ARGS='--millions 1 --segments 3000'
	.venv/bin/python -m bench.pipeline.run $(ARGS)

bench-worker: $(TESTS) ## measure the Python worker beside Oban, taskiq, Huey, Dramatiq, SAQ, Celery, RQ and pyfaktory; ARGS='--runs 3'
	.venv/bin/python -m bench.worker.run $(ARGS)

docs: $(DOCS) ## write the generated references and build the documentation site into site/
	.venv/bin/python -m crossdock.settings.reference docs/reference/settings.md
	.venv/bin/python -m crossdock.cli.reference docs/reference/command-line.md
	.venv/bin/python -m crossdock.pipeline.reference docs/reference/tables.md
	.venv/bin/python -m tools.fetch_mermaid
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet
	@echo 'read it with: python3 -m http.server --directory site'

pictures: $(TESTS) ## make the pictures in docs/images again, from running servers (needs Chromium)
	.venv/bin/python -m tools.top_picture
	.venv/bin/python -m tools.dashboard_pictures

build: $(RELEASE) ## build the source distribution and the wheel into dist/ and check them
	rm -rf dist
	.venv/bin/python -m build --no-isolation
	.venv/bin/python -m twine check --strict dist/*

lock: $(SERVER) ## write requirements/*.txt with the newest versions of all dependencies; UPGRADE= keeps those that fit
	test -d .venv/lock || .venv/bin/python -m venv .venv/lock
	.venv/lock/bin/python -m pip --disable-pip-version-check --quiet install '$(UV)'
	$(COMPILE) --extra server pyproject.toml requirements/build.in -o requirements/server.txt > /dev/null
	$(COMPILE) --extra server --extra pipeline -c requirements/server.txt pyproject.toml -o requirements/pipeline.txt > /dev/null
	$(COMPILE) --extra test -c requirements/server.txt -c requirements/pipeline.txt pyproject.toml \
		-o requirements/test.txt > /dev/null
	for extra in docs release; do $(COMPILE) --extra server --extra $$extra -c requirements/server.txt \
		-c requirements/test.txt pyproject.toml -o requirements/$$extra.txt > /dev/null; done

clean: ## remove .venv, caches and everything that was built; keep the data
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* coverage.xml htmlcov site dist build \
		docs/javascripts src/crossdock.egg-info

$(SERVER):
	@for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11 python3 ''; do \
		if [ -n "$$python" ] && "$$python" -c \
			'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; then break; fi; done; \
	if [ -z "$$python" ]; then \
		echo 'Crossdock needs Python 3.11 or newer with venv, and none was found. Install it (Debian: apt-get install' \
			'python3 python3-venv) or pass its path: make PYTHON=/path/to/python3.' >&2; exit 1; fi; \
	if ! .venv/bin/python -c 'import pip' > /dev/null 2>&1; then \
		echo "creating .venv with $$("$$python" --version)"; "$$python" -m venv --clear .venv; fi
	@echo 'installing the server: requirements/server.txt'
	@$(PIP) install --require-hashes -r requirements/server.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@rm -f .venv/.server-* .venv/.pipeline-* .venv/.tests-* .venv/.docs-* .venv/.release-*
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

$(DOCS): $(SERVER)
	@echo 'installing what the documentation site needs: requirements/docs.txt'
	@$(PIP) install --require-hashes -r requirements/docs.txt
	@rm -f .venv/.docs-*
	@touch $@

$(RELEASE): $(SERVER)
	@echo 'installing what a release needs: requirements/release.txt'
	@$(PIP) install --require-hashes -r requirements/release.txt
	@rm -f .venv/.release-*
	@touch $@
