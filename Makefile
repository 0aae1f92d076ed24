# The commands for a user. All targets except help and clean first make .venv with the tested versions, if .venv is missing
# or out of date.

PYTHON ?= python3
VENV := .venv
CORES ?= all
STUDY ?=
RUN ?=
KILLS ?= 20
STAGES ?=
TEXT ?=
# The text as it is. Otherwise make would expand each $ in it.
override TEXT := $(value TEXT)
export TEXT

export PATH := $(abspath $(VENV))/bin:$(PATH)
export PYTHONDONTWRITEBYTECODE :=
export DVC_NO_ANALYTICS := true
export DO_NOT_TRACK := true
export MLFLOW_DISABLE_TELEMETRY := true
MLFLOW_STORE = $(or $(MLFLOW_TRACKING_URI),sqlite:///mlflow.db)

INSTALLED := $(VENV)/installed
LOCKS := constraints.txt constraints-cuda.txt

.PHONY: help environment reproduce report status plan page check test quick test-cluster kill lint format docs deps bench study record translate sbom ui clean
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

# pip is upgraded first, because an old pip takes three times as long. --no-compile saves a minute: Python compiles a module
# at its first import and keeps the result, since PYTHONDONTWRITEBYTECODE is empty. PYTHONWARNINGS hides the warning of
# setuptools about editable installations.
$(INSTALLED): pyproject.toml $(LOCKS)
	@echo "Environment: the tested versions of $$(grep -c == constraints.txt) packages go into $(VENV)/, once; 2 GB with torch's CPU build, more with CUDA; a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@python -m pip install --quiet --no-compile --upgrade --constraint constraints.txt pip
	@PYTHONWARNINGS=ignore python -m pip install --quiet --no-compile $(addprefix --constraint ,$(LOCKS)) --editable '.[dev]'
	@touch $@

environment: $(INSTALLED)  ## the tested versions of everything, in .venv

reproduce: $(INSTALLED)  ## run the stale stages of what params.yaml selects, up to reports/ and the tables in docs/
	@echo "Environment: $(VENV)/ is up to date. The stages: snakemake --cores $(CORES)"
	@snakemake --cores $(CORES)
	@test -e reports/index.html || $(MAKE) --no-print-directory report
	@python -m tests.pages

report: $(INSTALLED)  ## reports/index.html, which is not in git, made again with the times of this machine
	dvc repro --force --single-item report
	python -m tests.pages

status: $(INSTALLED)  ## what is done, running and stale, and the scores so far
	@python -m pipeline.commands.status

plan: $(INSTALLED)  ## what `make reproduce` would do and cost; STUDY=paper: that study instead
	@python -m pipeline.commands.plan $(STUDY)

page: $(INSTALLED)  ## RUN=... serves a page that translates and shows the search
	@test -n "$(RUN)" || { echo "make: say which run: make page RUN=demo-tiny" >&2; exit 1; }
	@python -m pipeline.commands.page $(RUN)

check: $(INSTALLED)  ## check all of params.yaml
	python -m pipeline.commands.check

# One process more than there are CPUs, because tests of kills, servers and locks wait a third of the time.
test: $(INSTALLED)  ## all tests, a file a process
	python -m pytest -q -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile --no-loadscope-reorder

quick: $(INSTALLED)  ## the tests that are not slow: most of them, in a minute
	python -m pytest -q -m "not slow" -n auto --dist worksteal

test-cluster: $(INSTALLED)  ## the demonstration through a real Slurm of two nodes here, as root; docs/clusters.md
	python -m tests.cluster

kill: $(INSTALLED)  ## every stage killed at KILLS random moments and run again
	python -m tests.kill_everything --kills $(KILLS) $(if $(STAGES),--stages $(STAGES))

lint: $(INSTALLED)  ## style, mistakes and types
	ruff check .
	ruff format --check .
	mypy

format: $(INSTALLED)  ## let ruff mend the style
	ruff check --fix .
	ruff format .

docs: $(INSTALLED)  ## build/docs: the package transformer, from its docstrings
	pdoc --output-directory build/docs ./transformer

deps: $(INSTALLED)  ## write the modules that each stage imports into dvc.yaml, and the graph into README.md
	python -m tests.imports
	python -m tests.pages

bench: $(INSTALLED)  ## training, decoding and the workflow beside peers and goals, into benchmarks/results and docs
	python -m benchmarks.record training
	python -m benchmarks.record --into decoding-base decoding --shape base
	python -m benchmarks.record workflow
	python -m tests.pages

study: $(INSTALLED)  ## list the studies; STUDY=paper selects one
	python -m pipeline.commands.study $(STUDY)

record: $(INSTALLED)  ## RUN=... keeps a run's scores in results/, in git
	@test -n "$(RUN)" || { echo "make: say which run: make record RUN=demo-tiny" >&2; exit 1; }
	python -m pipeline.commands.record $(RUN)

translate: $(INSTALLED)  ## RUN=... translates TEXT="...", or without it what is typed
	@test -n "$(RUN)" || { echo "make: say which run: make translate RUN=demo-tiny" >&2; exit 1; }
	@$(if $(TEXT),printf '%s\n' "$$TEXT" |) python -m pipeline.commands.translate $(RUN)

sbom: $(INSTALLED)  ## sbom.json: what the environment is made of, as CycloneDX
	$(PYTHON) -m venv .sbom
	.sbom/bin/python -m pip install --quiet --no-compile cyclonedx-bom==7.5.0
	.sbom/bin/cyclonedx-py environment --output-reproducible --output-file $@.json $(VENV)

ui: $(INSTALLED)  ## MLflow's pages of the trainings
	mlflow ui --backend-store-uri "$(MLFLOW_STORE)"

clean:  ## remove the environment and the caches of tools; keep all data, models and results
	rm -rf $(VENV) .sbom sbom.json build .snakemake .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
