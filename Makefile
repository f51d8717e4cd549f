# Everything that can be made here; `make` alone explains.
CARGO ?= cargo
BIN := $(or $(CARGO_TARGET_DIR),target)/debug

.PHONY: help setup build demo test test-compose lint
.DEFAULT_GOAL := help

help: ## what can be made
	@echo 'Lockstock: stock that is not oversold, on real servers. Start with `make demo`.'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1|/p' $(MAKEFILE_LIST) | sed 's/|/\t/' | expand -t 20
	@echo
	@echo 'The binaries lie in $(BIN)/; `$(BIN)/lockstock --help` teaches the rest.'
	@echo 'Only test-compose needs Docker. Other servers are private processes on loopback, gone with what started them.'

setup: ## install what is missing (PostgreSQL, ZooKeeper with Java, a C compiler)
	@scripts/setup

build: ## compile the workspace; the first time takes minutes
	$(CARGO) build --workspace --locked

demo: setup build ## three runs on real servers, with a verdict
	$(BIN)/lockstock demo

# Not after `build`: the tests want more features of some dependencies, which would then compile twice. It makes the
# binaries as well, before the first test runs, because every package has integration tests.
test: setup ## all tests, on servers that they start themselves
	$(CARGO) test --workspace --locked

# The programs are those of `test`: another set of features would compile the dependencies again.
test-compose: setup ## the compose stack from Debian's packages, under load and faults (as root)
	$(CARGO) test --workspace --locked --no-run
	scripts/compose-offline prepare
	scripts/check-compose
	COMPOSE_FILE=compose.yaml:compose.debian.yaml $(CARGO) test --workspace --locked --test compose -- --nocapture
	@echo 'An engine that this started runs on; `scripts/compose-offline down` stops it.'

lint: ## formatting, clippy without a warning, licences and duplicates
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --test compose --locked -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --locked check; \
	 else echo 'cargo-deny is not installed: licences and sources are not checked (duplicates are, by `make test`)'; fi
