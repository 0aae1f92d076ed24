# The commands for users. If .venv is missing or out of date, all targets except help and clean first install the tested
# versions into it.

PYTHON ?= python3
VENV := .venv
CORES ?= all
STUDY ?=
RUN ?=
KILLS ?= 10
STAGES ?=
TEXT ?=
# Keeps TEXT as the user wrote it. Otherwise make would expand each $ in it.
override TEXT := $(value TEXT)
export TEXT RUN STUDY

export PATH := $(abspath $(VENV))/bin:$(PATH)
export PYTHONDONTWRITEBYTECODE :=
export PYTHONSAFEPATH :=
export DVC_NO_ANALYTICS := true
export DO_NOT_TRACK := true
export MLFLOW_DISABLE_TELEMETRY := true
# Snakemake needs a folder for caches. In a container, the home of a user may be missing or read-only.
ifeq ($(shell test -w "$${XDG_CACHE_HOME:-$$HOME}" && echo writable),)
export XDG_CACHE_HOME := $(abspath work/.cache)
endif
MLFLOW_STORE = $(or $(MLFLOW_TRACKING_URI),sqlite:///mlflow.db)

INSTALLED := $(VENV)/installed
LOCKS := constraints.txt constraints-cuda.txt
# pip writes the path of the environment into its programs. After a move they would not start, so it is made again.
MOVED := $(shell test ! -s "$(INSTALLED)" || test "$$(cat $(INSTALLED))" = "$$(realpath $(VENV))" || echo moved)

.PHONY: help moved environment reproduce report status plan page check schema test quick test-more kill lint format docs bench study translate sbom ui clean
.DEFAULT_GOAL := help

moved:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]*:.*## / {printf "%-14s%s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# uv installs, if it is there, otherwise pip. pip is upgraded first, because an old pip takes three times as long.
# --no-compile saves a minute: Python compiles a module at its first import and keeps the result, since
# PYTHONDONTWRITEBYTECODE is empty. PYTHONWARNINGS hides the warning of setuptools about editable installations.
# uv does not read pip's configuration, so an index that PIP_INDEX_URL names is passed on.
UV := $(shell command -v uv)
PACKAGES = $(addprefix --constraint ,$(LOCKS)) --editable '.[dev]'
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
$(INSTALLED): pyproject.toml $(LOCKS) $(MOVED)
	@echo "Environment: the tested versions of $$(grep -c == constraints.txt) packages go into $(VENV)/, once; 2 GB with torch's CPU build, more with CUDA; a minute or two"
ifdef UV
	@uv venv --quiet $(if $(MOVED),--clear,--allow-existing) --python $(PYTHON) $(VENV)
	@uv pip install --quiet --python $(VENV)/bin/python $(PACKAGES)
else
	@$(PYTHON) -m venv $(if $(MOVED),--clear) $(VENV)
	@python -m pip install --quiet --no-compile --upgrade --constraint constraints.txt pip
	@PYTHONWARNINGS=ignore python -m pip install --quiet --no-compile $(PACKAGES)
endif
	@realpath $(VENV) > $@

environment: $(INSTALLED)  ## install the tested versions of all packages into .venv

reproduce: $(INSTALLED)  ## run the stale stages that params.yaml selects, and write reports/
	@echo "Environment: $(VENV)/ is up to date. The stages: snakemake --cores $(CORES)"
	@snakemake --cores $(CORES)
	@python -m pipeline.orchestrating.results || { $(MAKE) --no-print-directory report && echo "The report: open reports/index.html in a browser."; }

report: $(INSTALLED)  ## write reports/index.html, which is not in git, with the times of this machine
	python -m pipeline.report --results results --scores scores --sets data/sets --times work/times --studies studies.yaml --out reports

status: $(INSTALLED)  ## show what is done, running and stale, and the scores so far
	@python -m pipeline.commands.status

plan: $(INSTALLED)  ## show what `make reproduce` would run and cost; STUDY=paper: the same for that study
	@python -m pipeline.commands.plan $(if $(STUDY),"$$STUDY")

page: $(INSTALLED)  ## RUN=... serves a web page that translates and shows the search
	@test -n "$$RUN" || { echo "make: say which run: make page RUN=demo-tiny" >&2; exit 1; }
	@python -m pipeline.extras.serving "$$RUN"

check: $(INSTALLED)  ## check all of params.yaml
	python -m pipeline.commands.check

schema: $(INSTALLED)  ## write params.schema.json and studies.schema.json, with which editors complete and check
	python -m pipeline.commands.schema

# One process more than there are CPUs, because tests of kills, servers and locks spend a third of their time waiting.
PYTEST = python -m pytest -q -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadgroup --no-loadscope-reorder

test: $(INSTALLED)  ## run the tests in parallel, except those of test-more
	$(PYTEST) -m "not more"

quick: $(INSTALLED)  ## run the tests that are not slow, in a minute
	$(PYTEST) -m "not slow and not more"

test-more: $(INSTALLED)  ## run the tests of kills, a full disk, a browser, servers, clusters and the GPU's harness
	$(PYTEST) -m more

kill: $(INSTALLED)  ## kill every stage at KILLS random moments and run it again
	python -m tests.kill_everything --kills $(KILLS) $(if $(STAGES),--stages $(STAGES))

lint: $(INSTALLED)  ## check style, mistakes and types
	ruff check .
	ruff format --check .
	mypy

format: $(INSTALLED)  ## let ruff correct the style
	ruff check --fix .
	ruff format .

docs: $(INSTALLED)  ## write build/docs, the documentation of the package transformer, from its docstrings
	pdoc --output-directory build/docs ./transformer '!transformer.fast.kernels'

bench: $(INSTALLED)  ## compare training and decoding with peers; write benchmarks/results
	python -m benchmarks.training --record training
	python -m benchmarks.decoding --shape base --record decoding-base

study: $(INSTALLED)  ## list the studies; STUDY=paper selects one
	python -m pipeline.commands.study $(if $(STUDY),"$$STUDY")

translate: $(INSTALLED)  ## RUN=... translates TEXT="...", or standard input if TEXT is not given
	@test -n "$$RUN" || { echo "make: say which run: make translate RUN=demo-tiny" >&2; exit 1; }
	@$(if $(TEXT),printf '%s\n' "$$TEXT" |) python -m pipeline.commands.translate "$$RUN"

sbom: $(INSTALLED)  ## write sbom.json, a list of the packages in the environment in the CycloneDX format
	$(PYTHON) -m venv .sbom
	.sbom/bin/python -m pip install --quiet --no-compile cyclonedx-bom==7.5.0
	.sbom/bin/cyclonedx-py environment --output-reproducible --output-file $@.json $(VENV)

ui: $(INSTALLED)  ## serve MLflow's web pages about the trainings
	@test "$(MLFLOW_TRACKING_URI)" != off || { echo "make: MLFLOW_TRACKING_URI is off, so there is no store to show" >&2; exit 1; }
	@case "$(MLFLOW_STORE)" in http://*|https://*) echo "The store is a server with web pages of its own: open the address in MLFLOW_TRACKING_URI";; \
	*) mlflow ui --backend-store-uri "$(MLFLOW_STORE)";; esac

clean:  ## remove the environment, the caches of tools, build/ and sbom.json; keep data, models and results
	rm -rf $(VENV) .sbom sbom.json build .snakemake .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
