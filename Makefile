# The commands of the repository. `make` alone lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

CARGO ?= cargo
# Refuses to change Cargo.lock on the way. `make test LOCKED=` allows it.
LOCKED ?= --locked
# Development builds by default: the first build takes half the time of a release
# one, and the gateway is quick enough to try. `make run PROFILE=release` for speed.
PROFILE ?= dev
# Arguments for the gateway: make run ARGS="--listen 127.0.0.1:9000"
ARGS ?=
say = @echo "==> $(1)"
xtask = $(CARGO) run --quiet $(LOCKED) -p xtask --

.PHONY: help
help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: run
run: ## Build and start the gateway (PROFILE=release for speed, ARGS="…" for options)
	$(call say,checking what the build needs)
	@scripts/setup-build
	@scripts/build-app --if-possible
	$(call say,building and starting the gateway ($(PROFILE) profile))
	@$(CARGO) run --profile $(PROFILE) -p toolyard -- serve $(ARGS)

.PHONY: build
build: ## Build the gateway (PROFILE=release for speed)
	$(call say,checking what the build needs)
	@scripts/setup-build
	@scripts/build-app --if-possible
	$(call say,building the gateway ($(PROFILE) profile))
	@$(CARGO) build --profile $(PROFILE) -p toolyard

# The tests come last, so that the last line is their summary.
.PHONY: test
test: ## Check and test everything once, as CI does
	$(call say,installing what the tests need)
	@scripts/setup-tests
	@scripts/build-app
	@$(MAKE) lint
	$(call say,examples in the documentation)
	@$(CARGO) test $(LOCKED) --workspace --doc --quiet
	$(call say,TypeScript packages and examples)
	@LOCKED=$(LOCKED) scripts/test-packages
	$(call say,web app in a browser)
	@LOCKED=$(LOCKED) scripts/test-app
	$(call say,kill -9 at every named place of the gateway)
	@NEXTEST_PROFILE=ci scripts/run-tests $(LOCKED) -p toolyard --features failpoints --test kill
	$(call say,tests)
	@NEXTEST_PROFILE=ci scripts/run-tests $(LOCKED) --workspace

.PHONY: fmt
fmt: ## Format the code
	$(call say,formatting)
	@$(CARGO) fmt --all

.PHONY: lint
lint: ## Check format, house rules, generated files, lints and dependencies
	$(call say,format)
	@$(CARGO) fmt --all --check
	$(call say,rules of the house)
	@$(xtask) tidy
	$(call say,generated files)
	@$(xtask) codegen --check
	$(call say,lints)
	@$(CARGO) clippy $(LOCKED) --workspace --all-targets -- -D warnings
	$(call say,known weaknesses of dependencies)
	@scripts/check-advisories

.PHONY: bench
bench: ## Measure the gateway (release build)
	@if [ ! -x bench/run ]; then echo "bench: there is no bench/run yet, so nothing to measure"; exit 1; fi
	$(call say,building the gateway (release profile))
	@$(CARGO) build --release $(LOCKED) -p toolyard
	$(call say,measuring)
	@bench/run $(ARGS)

.PHONY: codegen
codegen: ## Write the generated files
	$(call say,writing the generated files)
	@$(CARGO) run --quiet -p xtask -- codegen
	@$(CARGO) run --quiet -p toolyard -- config openapi > api/openapi.json
	@$(CARGO) run --quiet -p toolyard -- config schema > api/config.schema.json
