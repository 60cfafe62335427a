# The one door. `make help` says what there is; every target sets up what it needs, once.
.DEFAULT_GOAL := help
SHELL := /bin/sh
.SUFFIXES:

# What set-up brought comes first on PATH, so no target needs an activated environment.
export PATH := $(CURDIR)/.cache/bin:$(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$(PATH)
export PYTHONPATH := $(CURDIR):$(CURDIR)/functions
export PYTHONDONTWRITEBYTECODE :=
export AWS_PAGER :=
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1

BOOTSTRAP := sh workshop/python.sh -m workshop.bootstrap
BENCHES ?= placement planning prescale_memory kubernetes_client cold_start

.PHONY: help setup ready demo test test-long test-disruptive check bench bench-storm up down status logs synth bootstrap deploy destroy bill lock clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## install and build what the other targets need (each does this itself; a second run does nothing)
	@$(BOOTSTRAP)

ready:
	@$(BOOTSTRAP) --quiet

demo: ready ## a school morning on the local cloud: three minutes, the last two of them live
	@python -m demo.morning

test: check ## every check and test but the long tier
	pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not long and not disruptive"

test-long: ready ## the long tier
	pytest -m "long and not disruptive"

test-disruptive: ready ## alarms, kills, a whole day: breaks its stacks on purpose or takes long (45 minutes; not part of CI)
	pytest -m disruptive

check: ready ## style, types, layers, locks and documents, advisories, bill of materials
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	python -m workshop.locks check
	python -m infra.monitoring.document check
	python -m workshop.schemas check
	python -m workshop.audit
	python -m workshop.bill

bench: ready ## measure what the design promises
	@for each in $(BENCHES); do echo "== bench.$$each"; python -m "bench.$$each" || exit 1; done

bench-storm: ready ## a Spot storm: NODES=50 PODS=10 [PEER=<path to an aws-node-termination-handler binary>]
	@python -m bench.storm --nodes $(or $(NODES),50) --pods $(or $(PODS),10) $(if $(PEER),--peer "$(PEER)")

up: ready ## start a local cloud (AWS and Kubernetes on loopback) and keep it running
	@python -m localcloud up

down: ready ## stop it
	@python -m localcloud down

status: ready ## what of it runs, and where
	@python -m localcloud status

logs: ready ## what its parts have written
	@python -m localcloud logs

synth: ready ## write the CloudFormation template to cdk.out/ (no credentials, no network)
	cdk synth --quiet

bootstrap: ready ## prepare an account and region for the CDK, once: make bootstrap ENVIRONMENT=aws://<account>/<region>
	cdk bootstrap $(ENVIRONMENT)

deploy: ready ## deploy to the AWS account of your credentials, as firstbell.yaml says
	cdk deploy --all

destroy: ready ## take it away again
	cdk destroy --all

bill: ready ## write the bill of materials of what ships to Lambda, dist/firstbell.cdx.json
	@python -m workshop.bill

lock: ready ## resolve the pinned dependencies again (needs the network)
	python -m workshop.locks renew

clean: ## remove what runs left behind; what set-up installed stays (.venv, node_modules, .cache)
	rm -rf .localcloud cdk.out cdk.out.* build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	rm -f demo-report.json firstbell-report.html
	find . -name __pycache__ -type d -not -path './.venv/*' -not -path './node_modules/*' -prune -exec rm -rf {} +
