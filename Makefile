# Builds, installs and tests pg_bloom. PG_CONFIG chooses the PostgreSQL: make PG_CONFIG=/path/to/pg_config
#
# `make demo` and `make test` install what is missing. All others install nothing: they say what to run first.
#
# Whatever depends on PG_CONFIG is a recursive variable, evaluated when a recipe needs it: `make demo` and `make test`
# may install PostgreSQL first. For the same reason these run the later steps through a make of their own.

PG_CONFIG ?= pg_config
PROFILE ?= release
export PG_CONFIG PROFILE
# What pgrx reads.
export PGRX_PG_CONFIG_PATH = $(PG_CONFIG)
# Finds the Rust that rust-toolchain.toml names, or that scripts/setup installed.
CARGO = scripts/cargo

PG_VERSION = $(shell $(PG_CONFIG) --version)
PG_MAJOR = $(shell echo '$(PG_VERSION)' | sed -n 's/^PostgreSQL \([0-9]*\).*/\1/p')
PG_FEATURE = $(if $(filter 15 16 17 18 19,$(PG_MAJOR)),pg$(PG_MAJOR),$(error \
	PostgreSQL 15 to 19 is needed, but $(PG_CONFIG) is $(or $(PG_VERSION),not there: try scripts/setup)))
# pg15 is cargo's default: not naming it lets make and plain cargo share what they built.
CARGO_FEATURES = $(if $(filter-out pg15,$(PG_FEATURE)),--no-default-features --features $(PG_FEATURE))

# Any cargo knows where it builds; without cargo, as when root only installs, it is the usual place. Asked once.
TARGET_DIR = $(eval TARGET_DIR := $(or $(shell cargo metadata --no-deps --format-version 1 2>/dev/null | \
	sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'),$(CARGO_TARGET_DIR),target))$(TARGET_DIR)
LIBRARY = $(TARGET_DIR)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/libpg_bloom.so
# The PostgreSQL that the library was built for. Cargo doesn't notice when its headers become those of another minor version.
BUILT_FOR = $(dir $(LIBRARY))built-for-$(PG_FEATURE)
pkglibdir = $(DESTDIR)$(shell $(PG_CONFIG) --pkglibdir)
extensiondir = $(DESTDIR)$(shell $(PG_CONFIG) --sharedir)/extension
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" pg_bloom.control)
UPGRADES = $(wildcard sql/pg_bloom--*--*.sql)
# Debugging symbols are three quarters of the library. KEEP_SYMBOLS=yes installs them.
KEEP_SYMBOLS ?=

PG_REGRESS = $(dir $(shell $(PG_CONFIG) --pgxs))../test/regress/pg_regress
REGRESS_ALL = $(sort $(basename $(notdir $(wildcard tests/pg_regress/sql/*.sql))))
REGRESS ?= $(REGRESS_ALL)
REGRESS_OUTPUT ?= $(TARGET_DIR)/pg_regress

all: ## build the library (the default)
	@test ! -e '$(LIBRARY)' || test "$$(cat '$(BUILT_FOR)' 2>/dev/null)" = '$(PG_VERSION)' || \
		$(CARGO) clean --profile $(PROFILE) --package pgrx-pg-sys
	$(CARGO) build --profile $(PROFILE) $(CARGO_FEATURES)
	@mkdir -p '$(dir $(BUILT_FOR))' && echo '$(PG_VERSION)' >'$(BUILT_FOR)'

install: ## copy the built library, control file and SQL into PostgreSQL without symbols (DESTDIR is honoured; KEEP_SYMBOLS=yes)
	@lib='$(LIBRARY)'; test -f "$$lib" || { echo "$$lib is not there: run make first" >&2; exit 1; }; \
	newer=$$(find Cargo.toml Cargo.lock src core/src pgrx/src -newer "$$lib" -type f 2>/dev/null | head -n 1); \
	test -z "$$newer" || echo "warning: $$newer is newer than the library: run make to rebuild it" >&2; \
	test ! -e '$(BUILT_FOR)' || test "$$(cat '$(BUILT_FOR)')" = '$(PG_VERSION)' || \
		echo "warning: the library is for $$(cat '$(BUILT_FOR)'), not $(PG_VERSION): run make to rebuild it" >&2
	install -d '$(pkglibdir)' '$(extensiondir)'
	install -m 755 '$(LIBRARY)' '$(pkglibdir)/pg_bloom.so'
	$(if $(KEEP_SYMBOLS),,! command -v strip >/dev/null || strip --strip-unneeded '$(pkglibdir)/pg_bloom.so')
	install -m 644 pg_bloom.control $(UPGRADES) '$(extensiondir)/'
	install -m 644 sql/pg_bloom.sql '$(extensiondir)/pg_bloom--$(EXTVERSION).sql'

uninstall: ## remove what install copied
	rm -f '$(pkglibdir)/pg_bloom.so' '$(extensiondir)/pg_bloom.control' '$(extensiondir)'/pg_bloom--*.sql

deb: all ## make a Debian package for the PostgreSQL of PG_CONFIG, if that is Debian's, in the directory of builds
	scripts/deb '$(TARGET_DIR)/debian'

dist: ## write what is committed as an archive for PGXN, to target/
	mkdir -p target
	git archive --format=zip --prefix=pg_bloom-$(EXTVERSION)/ --output=target/pg_bloom-$(EXTVERSION).zip HEAD

# A test called setup prepares the database for the others: it always runs, and first.
installcheck: ## run the SQL tests on the running server that PGHOST, PGPORT and PGUSER name; REGRESS="a b" picks some
	mkdir -p '$(REGRESS_OUTPUT)'
	'$(PG_REGRESS)' --bindir='$(shell $(PG_CONFIG) --bindir)' --inputdir=tests/pg_regress \
		--outputdir='$(REGRESS_OUTPUT)' --dbname=contrib_regression \
		$(filter setup,$(REGRESS_ALL)) $(filter-out setup,$(REGRESS))

demo: ## install what is missing, build, and show pg_bloom at work on a throw-away server
	scripts/setup
	$(MAKE) all
	scripts/server with scripts/demo

test: ## install what is missing, build, and run every test
	scripts/setup python
	$(MAKE) all
	$(MAKE) all PROFILE=dev
	scripts/wheel
	scripts/setup js
	test -n "$$(scripts/js --missing)" || $(MAKE) js
	$(MAKE) --jobs 3 larger-tests other-tests sql-tests

# A test and its server often wait for each other: the programs that take longest run beside all others.
LARGER = executor filters index
larger-tests:
	$(CARGO) test --workspace $(CARGO_FEATURES) $(patsubst %,--test %,$(LARGER))

other-tests:
	$(CARGO) test --workspace $(CARGO_FEATURES) --lib --bins \
		$(patsubst %,--test %,$(filter-out $(LARGER),$(TESTS) $(call programs_of,core core/fuzz benches)))
	$(CARGO) test --workspace $(CARGO_FEATURES) --doc

sql-tests:
	SERVER_QUICK=yes scripts/server with $(MAKE) installcheck

js: ## build the JavaScript package in js/dist, and the script of its page
	scripts/js

matrix: ## run the tests with a server on PostgreSQL 15, 17 and 18, built from Debian's sources; VERSIONS="17 18"
	scripts/setup --check matrix
	scripts/matrix $(VERSIONS)

# What of the tests depends on the version of PostgreSQL: not the pages, the sources, the scripts
# and the Python package. LEFT_OUT names more that are left out, for a run that has to be short.
OF_NO_VERSION = applications documentation javascript links parquet python releases rooms scripts versions
# The names of the programs in tests/ of these directories.
programs_of = $(foreach directory,$(1),$(patsubst $(directory)/tests/%.rs,%,$(subst /main.rs,.rs,\
	$(wildcard $(directory)/tests/*.rs $(directory)/tests/*/main.rs))))
TESTS = $(call programs_of,.)
server-tests: all
	$(MAKE) all PROFILE=dev
	$(CARGO) test --no-fail-fast $(CARGO_FEATURES) \
		$(patsubst %,--test %,$(filter-out $(OF_NO_VERSION) $(LEFT_OUT),$(TESTS)))
	$(MAKE) sql-tests

# From the PostgreSQL of PG_CONFIG to that of UPGRADE_TO, whose library is in UPGRADE_TARGET_DIR.
UPGRADE_TEST ?= filters_survive_pg_upgrade
upgrade-test: all
	$(CARGO) test $(CARGO_FEATURES) --test upgrade -- --ignored --nocapture --exact $(UPGRADE_TEST)

# What clippy.toml disallows only the library denies itself.
lint: ## check formatting, clippy, documentation, scripts and the crate to publish; any warning is an error
	scripts/setup --check lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $(CARGO_FEATURES) -- -D warnings -A clippy::disallowed_macros -A clippy::disallowed_methods -A clippy::disallowed_types
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --document-private-items $(CARGO_FEATURES)
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --package pg_bloom_core --no-deps
	$(CARGO) package --package pg_bloom_core --allow-dirty --quiet
	shellcheck --severity=warning $(shell grep -l '^#!.*sh$$' scripts/* .ci/*)
	PATH="$$PWD/target/lint/bin:$$PATH" actionlint

# The parts of scripts/setup that the parts of the benchmarks need.
NEEDED_BY_BENCH = $(if $(filter server,$(or $(ONLY),server)),hll) $(if $(filter index,$(or $(ONLY),index)),locale) \
	$(if $(filter sets,$(or $(ONLY),sets)),redisbloom) $(if $(filter text,$(ONLY)),texts)
bench: ## measure against hll and others, and write docs/benchmarks.md; ROWS=1000000 makes it quicker, ONLY=index a part of it
	scripts/setup --check $(NEEDED_BY_BENCH)
	$(MAKE) all
	scripts/bench

fuzz: ## try hostile input on each target of core/fuzz for FUZZ_SECONDS (60)
	scripts/setup --check
	scripts/fuzz run

soak: ## sessions that build, probe, merge and update at once, for SOAK_SECONDS (300); then random tests, SOAK (10) times as long
	scripts/setup --check
	$(MAKE) all
	SOAK_SECONDS=$${SOAK_SECONDS:-300} $(CARGO) test $(CARGO_FEATURES) --test concurrent -- --nocapture
	SOAK=$${SOAK:-10} $(CARGO) test --no-fail-fast $(CARGO_FEATURES) --test index --test index_filters
	SOAK=$${SOAK:-10} $(CARGO) test --no-fail-fast $(CARGO_FEATURES) --test filters -- arguments hostile limits

figures: ## draw the figures of docs/sizing.md from measurements; FIGURES="rate bits size" leaves out what depends on the machine
	$(CARGO) run --release --package pg_bloom_benches --bin figures -- $(FIGURES)

sharding: ## measure a set of 200000000 elements as 64 filters and as one; ROWS=1000000 makes it quicker
	scripts/setup --check
	$(MAKE) all
	scripts/sharding

citus: ## compare queries on Citus with local ones; CITUS_DIR names where Citus is installed, / for the system
	scripts/setup --check
	$(MAKE) all
	scripts/citus

timescale: ## try hypertables with TimescaleDB; TIMESCALE_DIR names where that is installed, / for the system
	scripts/setup --check
	$(MAKE) all
	scripts/timescale

clean: ## delete everything built
	$(CARGO) clean

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 14

.PHONY: all install uninstall deb dist installcheck demo test larger-tests other-tests sql-tests matrix server-tests \
	upgrade-test lint bench fuzz soak figures sharding citus timescale js clean help
