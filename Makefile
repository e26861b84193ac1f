# Everything a newcomer types. `make` alone lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory --no-builtin-rules

# Some machines forbid it. Then each of the hundreds of Python processes of a run compiles all of its modules again, which
# takes more CPU than most of them need for their work (Airflow: 2.3 of 5 s).
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
COMPILED := include/strait/wire/moving.pyx include/strait/wire/columnar.pyx include/strait/wire/varints.pxd

# uv fetches in seconds what pip needs minutes for; it is put into the environment where there is none.
FIND_UV := uv=$$(for each in uv $(BIN)/uv; do "$$each" --version >/dev/null 2>&1 && { echo "$$each"; break; }; done || true)

# $(call step,what it does) starts the clock; $(done) stops it.
step = @echo "==> $(1)"; begin=$$SECONDS
done = echo "    $$(( SECONDS - begin )) s"

.PHONY: help
help: ## List these commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: install
install: $(INSTALLED) java jars ## Make .venv with everything in it, `strait` too; check Java; fetch Kafka's jars

.PHONY: demo
demo: install ## Copy real topics between two Kafka clusters, with Airflow and Spark, and show how it goes
	@$(BIN)/strait demo

# $(call pytest,name of the report,workers) runs tests side by side, each worker with clusters of its own, and keeps how long
# each took, which `make durations` takes up. On two cores the first tier, whose tests wait for a third of their time, has
# three; the long faults of the second would then wait for each other. WORKERS=1 is for small machines.
pytest = $(BIN)/python -m pytest -n $(or $(WORKERS),$(2)) --durations=50 --durations-min=1 --junitxml=build/junit-$(1).xml

.PHONY: test
test: install browser check ## Run what every change has to pass (20 minutes); one part of the suite: make test ARGS="tests/unit -k naming"
	$(call step,tests)
	$(or $(and $(ARGS),$(BIN)/python -m pytest $(ARGS)),$(call pytest,test,3) --tier first)
	$(done)

.PHONY: test-all
test-all: install browser check check-tests ## Run the whole suite, with long faults, older brokers, Java clients, MirrorMaker 2 and YARN (150 minutes)
	$(call step,all tests)
	STRAIT_SITES="local standalone yarn" $(call pytest,all,2) $(ARGS)
	$(done)

.PHONY: durations
durations: $(INSTALLED) ## Order test files by the durations of the last `make test` and `make test-all`
	$(BIN)/python tests/support/durations.py build/junit-*.xml

.PHONY: compat
compat: install ## Try links between every pair of the oldest, middle and newest brokers, on ZooKeeper and on KRaft
	@echo "==> compatibility"
	STRAIT_COMPAT="$(or $(PAIRS),all)" $(BIN)/python -m pytest tests/compat $(ARGS)
	$(BIN)/python tests/support/doc_tables.py

.PHONY: yarn
yarn: install ## Run applications in a real Hadoop cluster of two nodes, parts of which are killed (about 6 minutes)
	@echo "==> YARN"
	STRAIT_SITES=yarn $(BIN)/python -m pytest $(or $(ARGS),tests/spark/launchers tests/yarn)

.PHONY: fulldisk
fulldisk: install ## Fill the disk of a running Airflow; needs root, which mounts a small one (5 minutes)
	@echo "==> full disk"
	STRAIT_SITES=fulldisk $(BIN)/python -m pytest $(or $(ARGS),tests/fulldisk)

MINUTES ?= 30

# ARGS="--failovers N": fail over back and forth N times instead, and compare what consumers have processed.
# ARGS="--pool N": kill tasks of a pool of twenty links N times instead.
.PHONY: soak
soak: install ## Break a running link at random for MINUTES=30, again with ARGS="--seed N", and compare every record
	@PYTHONPATH=tests $(BIN)/python -m support.soak.soak --minutes $(MINUTES) $(ARGS)

.PHONY: kubernetes
kubernetes: install ## Run applications in a real Kubernetes API server; needs root and Go, which compiles it once (15 minutes)
	@echo "==> Kubernetes"
	PYTHONPATH=include:tests $(BIN)/python -m support.kubernetes.binaries
	STRAIT_SITES=kubernetes $(BIN)/python -m pytest $(or $(ARGS),tests/spark/launchers/test_contract.py tests/kubernetes)

.PHONY: check
check: $(INSTALLED) ## Check format, lint, types, and who imports whom
	$(call step,format)
	$(BIN)/ruff format --check .
	$(done)
	echo "==> lint"
	begin=$$SECONDS
	$(BIN)/ruff check .
	$(done)
	echo "==> types"
	begin=$$SECONDS
	$(BIN)/mypy
	$(done)
	echo "==> imports"
	begin=$$SECONDS
	PYTHONPATH=plugins $(BIN)/lint-imports
	$(done)

.PHONY: check-tests
check-tests: $(INSTALLED) ## Check that tests and benchmarks call what they test as it is declared (a minute, later seconds)
	$(call step,types of calls in tests and benchmarks)
	$(BIN)/mypy --config-file tests/mypy.ini
	$(done)

.PHONY: bench
bench: install ## Measure against MirrorMaker 2, in one run on this machine
	@PYTHONPATH=benchmarks $(BIN)/python -m mm2 $(ARGS)

.PHONY: endurance
endurance: install ## Measure what weeks and thousands of partitions cost a link; one scenario: ARGS="--scenario weeks"
	@PYTHONPATH=benchmarks $(BIN)/python -m endurance $(ARGS)

PACKAGE ?= build/strait-package.tar.gz

.PHONY: package
package: install ## Pack Strait and its libraries into one archive for the hosts of a Spark cluster
	$(call step,package)
	$(BIN)/python -m strait.launch.package $(PACKAGE)
	$(done)

# $(call named_by_system,folder) gives wheels with compiled code the names that package indexes take, such as manylinux2014.
named_by_system = for wheel in $(1)/strait-*-linux_*.whl; do \
	[ -e "$$wheel" ] || continue; \
	said=$$(PATH="$(BIN):$$PATH" auditwheel repair --wheel-dir $(1) "$$wheel" 2>&1) || { echo "$$said" >&2; exit 1; }; \
	rm "$$wheel"; \
done

# pyproject.toml allows ranges, for those who build from the source archive. Here their versions and hashes are pinned: a wheel
# records the version of setuptools, so that a newer one would make another file from the same sources.
BUILD = "$$uv" build --quiet --build-constraints requirements-build.lock --require-hashes

.PHONY: wheel
wheel: $(INSTALLED) ## Build the package and the provider for Airflow, build/*.whl; `pip install` them into any environment
	$(call step,wheels)
	$(FIND_UV)
	rm -f build/strait-*.whl
	$(BUILD) --wheel --out-dir build .
	$(call named_by_system,build)
	rm -rf provider/build
	$(BUILD) --wheel --out-dir build provider
	ls build/*.whl
	$(done)

RELEASE ?= build/release
# The repository that the package's metadata links to: that of this checkout if it is on the web. Another: make release REPOSITORY=https://…
REPOSITORY ?= $(filter https://%,$(shell git remote get-url origin 2>/dev/null))

# Equal sources give equal files: the times in them are those of the commit, or 1980 outside of a checkout, and compiled code
# has no paths.
.PHONY: release
release: $(INSTALLED) sbom ## Build what a release has into build/release: source archive, package, provider, archive for clusters, bill of materials, checksums
	$(call step,release)
	$(FIND_UV)
	version=$$($(BIN)/strait version | sed -n 's/^strait *//p')
	tag=$$(git tag --points-at HEAD 'v*' 2>/dev/null || true)
	if [ -n "$$tag" ] && { [ "$$tag" != "v$$version" ] || ! grep -q "^## $$version - " CHANGELOG.md; }; then
		echo "release: this commit has the tag $$tag, but the version is $$version, or CHANGELOG.md has no section of it (CONTRIBUTING.md)" >&2
		exit 1
	fi
	rm -rf $(RELEASE)
	mkdir -p $(RELEASE)
	export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 315532800) CFLAGS=-g0 STRAIT_REPOSITORY="$(REPOSITORY)"
	$(BUILD) --out-dir $(RELEASE) .
	$(call named_by_system,$(RELEASE))
	rm -rf provider/build
	$(BUILD) --wheel --out-dir $(RELEASE) provider
	rm -f $(RELEASE)/.gitignore
	# setuptools leaves the time and the user of the build in the source archive
	for sources in $(RELEASE)/strait-*.tar.gz; do
		tar -C $(RELEASE) -xzf "$$sources"
		folder=$$(basename "$$sources" .tar.gz)
		tar -C $(RELEASE) --sort=name --mtime="@$$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w \
			-cf - "$$folder" | gzip -n9 >"$$sources.new"
		mv "$$sources.new" "$$sources"
		rm -r "$(RELEASE)/$$folder"
	done
	$(BIN)/python -m strait.launch.package $(RELEASE)/strait-package.tar.gz
	cp build/sbom.json $(RELEASE)
	(cd $(RELEASE) && sha256sum * >SHA256SUMS)
	cat $(RELEASE)/SHA256SUMS
	$(done)

COMPILE = "$$uv" pip compile --quiet --universal --python-version 3.11 --no-annotate --generate-hashes \
	--custom-compile-command "make lock" $(ARGS)

# What the tests use is as it always is; what Strait runs on is as old as requirements*.txt allow.
OLDEST := tests/unit/engine tests/unit/wire tests/unit/config tests/unit/kafka tests/unit/cli tests/unit/launch tests/unit/page \
	tests/broker/test_state_publisher.py tests/broker/test_control.py tests/broker/test_quarantine.py tests/broker/test_engine_copy.py \
	tests/broker/test_command_line.py tests/broker/test_group_sync.py tests/broker/test_audit.py tests/broker/test_security.py tests/e2e/test_run.py \
	tests/airflow/test_dags.py tests/airflow/test_openapi.py tests/airflow/test_shared_dags.py tests/airflow/test_lineage.py \
	tests/airflow/test_foreign_text.py tests/airflow/test_noticing.py tests/airflow/test_own_dags.py tests/e2e/airflow/test_dag.py

.PHONY: oldest
oldest: $(INSTALLED) ## Try the oldest versions that requirements*.txt allow, in .venv-oldest (25 minutes)
	$(call step,oldest versions)
	$(FIND_UV)
	"$$uv" venv --quiet --allow-existing --python $(BIN)/python .venv-oldest
	# --upgrade also replaces what an earlier run has left there and is newer
	"$$uv" pip install --quiet --python .venv-oldest/bin/python --upgrade --resolution lowest-direct -r requirements-dev.txt
	"$$uv" pip install --quiet --python .venv-oldest/bin/python --no-deps --editable .
	.venv-oldest/bin/python -m pytest -n0 $(or $(ARGS),$(OLDEST))
	$(done)

.PHONY: lock
lock: $(INSTALLED) ## Resolve requirements*.txt, and what builds run, into requirements*.lock; newer versions: make lock ARGS=--upgrade
	@$(FIND_UV)
	whole="requirements.txt requirements-airflow.txt requirements-kubernetes.txt"
	$(COMPILE) --output-file requirements.lock $$whole
	$(COMPILE) --output-file requirements-msk.lock --constraint requirements.lock $$whole requirements-msk.txt
	$(COMPILE) --output-file requirements-dev.lock --constraint requirements-msk.lock requirements-dev.txt
	requires='import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'
	$(BIN)/python -c "$$requires" | $(COMPILE) --output-file requirements-build.lock -

.PHONY: images-lock
images-lock: ## Ask registries for the digests of the images in docker/images.lock, and write them there (needs Docker)
	python3 docker/lock_images.py

.PHONY: pictures
pictures: install browser ## Draw the page for the documentation; every view in every scene and look: make pictures ARGS=DIRECTORY
	PYTHONPATH=plugins $(BIN)/python tests/support/pictures/page.py $(ARGS)

.PHONY: sbom
sbom: $(INSTALLED) ## Write the bill of materials of what Strait runs on, build/sbom.json (CycloneDX)
	@mkdir -p build
	$(BIN)/python -W ignore -m cyclonedx_py requirements requirements.lock --pyproject pyproject.toml --output-reproducible \
		--output-file build/sbom.json

$(BIN)/python:
	$(call step,virtual environment)
	fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'
	for python in python3.11 python3.12 python3.13 python3; do
		"$$python" -c "$$fits" 2>/dev/null && break
		python=
	done
	if [ -z "$$python" ]; then
		echo "install: looking for Python 3.11 to 3.13: none on PATH (Debian, Ubuntu: apt-get install python3 python3-venv)" >&2
		exit 1
	fi
	$(FIND_UV)
	if [ -n "$$uv" ]; then
		"$$uv" venv --quiet --allow-existing --python "$$python" $(VENV)
	elif ! "$$python" -m venv $(VENV); then
		echo "install: making $(VENV): $$python cannot (Debian, Ubuntu: apt-get install python3-venv)" >&2
		exit 1
	fi
	$(done)

$(INSTALLED): requirements-dev.lock pyproject.toml $(COMPILED) | $(BIN)/python
	$(call step,Python packages)
	if ! command -v gcc cc >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq && apt-get install -yqq --no-install-recommends gcc libc6-dev python3-dev >/dev/null || true
	fi
	$(FIND_UV)
	if [ -z "$$uv" ]; then
		$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
		uv=$(BIN)/uv
	fi
	"$$uv" pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.lock
	"$$uv" pip install --quiet --python $(BIN)/python --no-deps --editable .
	if ! $(BIN)/python -c "import strait.wire.moving" 2>/dev/null; then
		echo "install: compiling strait.wire.moving: no C compiler, or no headers of Python; all works, but small batches take" >&2
		echo "  several times the CPU (Debian, Ubuntu: apt-get install gcc python3-dev, then make -B install)" >&2
	fi
	$(BIN)/python -m strait.launch.bytecode >/dev/null
	touch $@
	$(done)

.PHONY: java
java: $(INSTALLED)
	@$(BIN)/python -m strait.launch.java >/dev/null 2>&1 && exit
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "==> Java"
		begin=$$SECONDS
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq
		apt-get install -yqq --no-install-recommends openjdk-17-jre-headless >/dev/null \
			|| apt-get install -yqq --no-install-recommends openjdk-21-jre-headless >/dev/null
		$(done)
	fi
	$(BIN)/python -m strait.launch.java >/dev/null

.PHONY: browser
browser:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "==> Chromium"
		begin=$$SECONDS
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq
		apt-get install -yqq --no-install-recommends chromium >/dev/null || true
		$(done)
	fi
	command -v chromium >/dev/null || echo "browser: no chromium: the page's tests will fail (Debian: apt-get install chromium)" >&2

.PHONY: jars
jars: $(INSTALLED) java
	@echo "==> jars of Kafka, and class data of Spark (it starts in two thirds of the time) and brokers (in half the time)"
	begin=$$SECONDS
	$(BIN)/python -m strait.launch.class_data >/dev/null & spark=$$!   # meanwhile: one computes, the other waits for the network
	$(BIN)/python -m strait.embedded.jars >/dev/null
	$(BIN)/python -m strait.embedded.class_data >/dev/null
	wait $$spark || true   # says why it has none; only starts take longer then
	$(done)
