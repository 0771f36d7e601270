# Everything that a contributor does is one of these targets: see `make help`.
# Go, git, make and a C compiler have to be there. tools/packages.sh installs the Debian
# packages that a target lacks, before anything is built. Tools, and the control plane
# that tests run against, are built from the modules that tools/ pins.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BIN   := $(CURDIR)/bin
TOOLS := $(BIN)/tools

# The modules of the workspace, as paths; go.work is the only list of them.
MODULES  := $(shell sed -n 's,^[[:space:]]*\./,,p' go.work)
packages  = $(patsubst %,./%/...,$(1))
# Our own modules outside of it, whose dependencies no other module has. `make test-long` tries them.
ALONE    := tools/monitoring tools/release

# The modules whose tests run whole clusters.
WHOLE_MODULES := localcluster test
UNIT_MODULES  := $(filter-out $(WHOLE_MODULES),$(MODULES))

# The packages that decide and do nothing else. Every statement of theirs is covered.
PURE := $(wildcard core/rollout core/scale core/lifecycle core/health core/orphan core/providerspec core/foreign core/instance core/annotations core/machinetemplate core/driver/limiter core/bootstrap/token core/bootstrap/csr core/healthcheck core/forecast core/earliest core/messages)

# Every folder in a cmd folder that holds a command becomes bin/FOLDER.
COMMANDS := $(patsubst %/main.go,./%,$(wildcard cmd/*/main.go localcluster/cmd/*/main.go providers/*/cmd/*/main.go test/*/cmd/*/main.go))

# The trace pages of gRPC, which nothing serves, keep Go's linker from dropping code that
# nothing calls: a fifth of each executable.
TAGS := grpcnotrace

# Every build has the same flags, so that Go compiles each package once: for commands, tests,
# linters and the control plane. Debug information would cost a fifth of the time.
export GOFLAGS     := -trimpath -buildvcs=false -tags=$(TAGS) -gcflags=all=-dwarf=false
export CGO_ENABLED := 0

# What the executables of a release call themselves. Others say that they are of no release.
VERSION  ?= v0.0.0-dev.g$(shell git rev-parse --short=12 HEAD)
REVISION  = $(shell git rev-parse HEAD)$(if $(shell git status --porcelain),-dirty)
RELEASE  ?= $(BIN)/release
IMAGES   := ./cmd/millwright-manager ./cmd/driver-conformance ./providers/openstack/cmd/millwright-driver-openstack ./providers/fake/cmd/millwright-driver-fake
PLATFORMS ?= linux/amd64 linux/arm64
# What people download: the plugin of kubectl, which comes first, and the harness for authors of drivers.
DOWNLOADS := ./cmd/kubectl-millwright ./cmd/driver-conformance ./cmd/fault-proxy
DOWNLOAD_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

# Tests find the control plane here (controller-runtime's envtest reads it, too).
export KUBEBUILDER_ASSETS := $(BIN)

# The example driver in TypeScript, and where npm notes what it has installed.
EXAMPLE_NODE := providers/example-node
NODE_MODULES := $(EXAMPLE_NODE)/node_modules/.package-lock.json

# Properties are tried on the same generated histories each time; `make properties` tries others.
export RAPID_SEED ?= 1

# Extra flags for every `go test`, for instance GOTESTFLAGS=-count=1. The linter does what
# `go vet` does. MILLWRIGHT_INPUTS is for what Go's test cache does not see.
GOTESTFLAGS ?=
INPUTS   = inputs=$$($(CURDIR)/tools/inputs.sh) && MILLWRIGHT_INPUTS=$$inputs
GOTEST   = $(INPUTS) go test -vet=off $(GOTESTFLAGS)
RACETEST = $(INPUTS) CGO_ENABLED=1 go test -vet=off $(GOTESTFLAGS) -race

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: controlplane commands ## Build everything into bin/: Millwright, its tools, a Kubernetes control plane.

.PHONY: example-node
example-node: $(EXAMPLE_NODE)/dist/built ## Build the example driver in TypeScript; needs Node.js and npm.

.PHONY: demo
demo: $(if $(filter qemu,$(CLOUD)),packages-demo-qemu) build $(if $(filter qemu,$(CLOUD)),node-image) ## Watch a MachineDeployment become Nodes. CLOUD=openstack or qemu chooses the cloud, KEEP=1 leaves it running, DIR=… says where.
	@exec $(BIN)/millwright demo $(if $(CLOUD),--cloud '$(CLOUD)') $(if $(KEEP),--keep) $(if $(DIR),--dir '$(DIR)')

.PHONY: bench
bench: build ## Measure it beside the floor: N=1000 machines, JSON in OUT=bin/bench.json.
	@exec $(BIN)/bench -machines '$(or $(N),1000)' -bin $(BIN) -deploy deploy -out '$(or $(OUT),$(BIN)/bench.json)' \
	  $(if $(AUTOSCALER),-autoscaler) $(if $(JOIN),-join) $(if $(IDLE),-idle '$(IDLE)') $(if $(PROFILES),-profiles '$(PROFILES)')

##@ Prove

.PHONY: test
test: packages-test ## Run what every change has to pass, from nothing.
	@go run ./test/cmd/suite test

.PHONY: test-long
test-long: ## Run what takes hours, in parts of an hour at most. PART=… chooses; a part that passed on the same inputs is left out, unless AGAIN=1.
	@go run ./test/cmd/suite long $(if $(AGAIN),-again) $(PART)

.PHONY: test-changed
test-changed: ## Run the parts of `make test-long` that have an input which this branch changed. BASE=origin/main, LIST=1 only names them.
	@go run ./test/cmd/suite changed $(if $(BASE),-base '$(BASE)') $(if $(LIST),-list)

# tools/packages.sh installs what a part lacks.
PACKAGES := $(addprefix packages-,test race userdata docs qemu openstack-boot demo-qemu)
.PHONY: $(PACKAGES)
$(PACKAGES):
	@tools/packages.sh $(@:packages-%=%)

# -short tries fewer generated histories and changes, and leaves out what `make test-long` has.
# SHORT= tries all.
SHORT ?= -short
# With -short rapid tries a fifth of these. Packages that set their own number ignore it.
unit race-unit: export RAPID_CHECKS := 500

# What `make test` runs under the race detector: what has goroutines of its own.
RACED := sdk transport conformance core/driver providers/openstack/session providers/openstack/batch providers/openstack/driver
# What shows that a driver keeps to the contract: `make conformance`.
CONFORMING := providers/example/cmd providers/fake/cmd providers/openstack/cmd providers/qemu/cmd
# The other packages of the project, without those of WHOLE_MODULES that run whole clusters.
WHOLE      := ./test/e2e ./test/apischema ./test/canaries ./test/examplenode ./test/chaos ./localcluster
ELSEWHERE  := fences suite docs realvm
other_unit  = $$(go list $(call packages,$(1)) | grep -v $(patsubst %,-e '/%$$',$(PURE) $(WHOLE:./%=%) $(ELSEWHERE:%=test/%)) \
  $(foreach p,$(RACED) $(CONFORMING),-e '/millwright/$(p)$$' -e '/millwright/$(p)/'))

.PHONY: unit
unit: build ## Run the tests of packages; some start an API server.
	@$(MAKE) --keep-going -j2 pure unit-raced unit-plain unit-whole

# Those with an API server mostly wait: more of them run at once than there are cores.
.PHONY: unit-plain
unit-plain:
	@$(GOTEST) $(SHORT) -p 4 -parallel 8 -timeout 10m $(call other_unit,$(UNIT_MODULES))

# They read beside their modules in many places, so that Go's test cache does not count.
.PHONY: unit-whole
unit-whole:
	@$(GOTEST) $(SHORT) -count=1 -timeout 10m $(call other_unit,$(WHOLE_MODULES)) ./localcluster ./test/canaries

.PHONY: unit-raced
unit-raced:
	@$(RACETEST) $(SHORT) -p 4 -parallel 8 -timeout 10m -skip TestManyMachinesAreListed $(patsubst %,./%/...,$(RACED))
	@$(GOTEST) -run TestManyMachinesAreListed ./providers/openstack/driver # its memory, in more passes than the race detector has time for

.PHONY: conformance
conformance: build example-node ## Try every driver of this repository with the harness.
	@$(GOTEST) $(SHORT) -p 4 -parallel 8 -timeout 15m $(patsubst %,./%/...,$(CONFORMING))
	@$(GOTEST) $(SHORT) -count=1 -timeout 15m ./test/examplenode

.PHONY: api
api: build $(TOOLS)/helm ## Try the CustomResourceDefinitions, chart, plugin and page on a real API server.
	@$(GOTEST) $(SHORT) -count=1 -timeout 15m ./test/apischema

.PHONY: fences
fences: ## Check who imports whom, and what else holds for the whole tree.
	@$(GOTEST) -count=1 ./test/fences ./test/suite

.PHONY: docs-links
docs-links: ## Check that each link of the documentation leads somewhere, and that a test runs each command.
	@$(GOTEST) -count=1 -run 'Links|EveryCommand' ./test/docs

.PHONY: e2e
e2e: build $(TOOLS)/helm ## Run the tests of whole processes on a real cluster.
	@$(GOTEST) $(SHORT) -count=1 -timeout 20m ./test/e2e

.PHONY: site
site: ## Make a site of the documentation in bin/site; needs MkDocs (Debian: mkdocs).
	@mkdocs build --quiet --strict --config-file tools/site/mkdocs.yml

.PHONY: chaos
chaos: build racing ## Kill it, ROUNDS=… times, and judge. CLOUD=openstack chooses the cloud, LAYOUT=two-clusters where the Nodes are, FORGETFUL=2s a cloud without memory and how late its creates may land, SEED=… repeats a campaign, PLANTED=all proves that bugs are found.
	@exec $(BIN)/chaos $(if $(CLOUD),-cloud '$(CLOUD)') $(if $(LAYOUT),-layout '$(LAYOUT)') $(if $(UPSTREAM),-upstream '$(UPSTREAM)') $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(SEED),-seed $(SEED)) $(if $(SLOW),-slow $(SLOW)) $(if $(FORGETFUL),-forgetful $(FORGETFUL)) $(if $(DIR),-dir '$(DIR)') $(if $(PLANTED),-planted $(PLANTED))

.PHONY: features
features: packages-userdata $(WHOLE_NEEDS) node-image $(TOOLS)/ignition ## Run the tests of whole processes, the long ones whole, and show which test shows which behaviour; ID=LIFE: of those alone.
	@mkdir -p $(BIN)/results && rm -f $(BIN)/results/*.json
	@$(RACETEST) -count=1 -timeout 3h -json $(if $(ID),-run 'Test$(ID)') $(call packages,$(WHOLE_MODULES)) > $(BIN)/results/features.json || true
	@go run ./test/cmd/features docs/features.md $(BIN)/results/*.json

.PHONY: mutation
mutation: $(TOOLS)/mutate ## Break the pure packages in many small ways: do their tests notice? ONLY=a package or file below core.
	@$(TOOLS)/mutate core $(or $(ONLY),$(patsubst core/%,%,$(PURE)))

.PHONY: properties
properties: ## Try the properties of the pure packages on CHECKS=50000 new histories each.
	@export RAPID_SEED=0; $(GOTEST) -count=1 -timeout 100m $$(grep -l pgregory.net/rapid -r $(patsubst %,./%,$(PURE)) | xargs -n1 dirname | sort -u) -rapid.checks=$(or $(CHECKS),50000)

# Go fuzzes one target at a time. What it finds, it leaves in the package's testdata/fuzz.
.PHONY: fuzz
fuzz: ## Feed garbage to all that reads what others write, FUZZTIME=2m for each target.
	@targets=$$(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(MODULES) | sed -E 's,/[^/]+:[0-9]+:func , ,' | sort); \
	  test -n "$$targets" || { echo "there is nothing to fuzz"; exit 1; }; \
	  while read -r package target; do echo "== $$package $$target"; \
	    $(GOTEST) -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(or $(FUZZTIME),2m)' -fuzzminimizetime 100x "./$$package"; done <<< "$$targets"

.PHONY: lint
lint: prose $(TOOLS)/golangci-lint $(TOOLS)/buf $(TOOLS)/deadcode ## Run the linters over Go and protobuf.
	@$(TOOLS)/golangci-lint run $(call packages,$(MODULES))
	@tools/deadcode/check.sh $(TOOLS)/deadcode
	@$(TOOLS)/buf lint
	@$(TOOLS)/buf format --diff --exit-code
	@$(TOOLS)/buf breaking proto --against proto/contract.txtpb

# Vale, and our checker of the committed list, which Go rebuilds when it changes.
PROSE = cd tools/prose && GOWORK=off go build -o $(TOOLS)/prose . && cd ../.. && $(TOOLS)/prose

.PHONY: prose
prose: $(TOOLS)/vale ## Check the English of comments and docs: no file may have more findings than tools/prose/findings.txt allows.
	@cd tools/prose && export GOWORK=off && $(GOTEST) .
	@$(PROSE)

.PHONY: prose-update
prose-update: $(TOOLS)/vale ## Lower the numbers in tools/prose/findings.txt. RAISE=1 also raises them.
	@$(PROSE) -update $(if $(RAISE),-raise)

.PHONY: contract-image
contract-image: $(TOOLS)/buf ## Take the contract of today as the one that `make lint` compares with. First tell the change in docs/contract.md.
	@$(TOOLS)/buf build proto --exclude-source-info -o proto/contract.txtpb

.PHONY: verify
verify: generators ## Check that generated files are current.
	@tools/verify.sh

##@ Parts of `make test-long`

# What tests of whole processes run, beside what `make build` makes.
WHOLE_NEEDS := packages-race build racing previous example-node $(TOOLS)/helm

# Tests of test/e2e that are parts of their own: one part may take an hour.
OPENSTACK_TESTS := OpenStack
OUTAGE_TESTS    := TwoClusters|TestLIFE13|TestLIFE10
SKEW_TESTS      := UpgradedInEitherOrder|TestAPI9_AnUpgrade

.PHONY: race-unit
race-unit: packages-race build ## The tests of all packages, under the race detector.
	@$(RACETEST) $(SHORT) -p 4 -parallel 8 -timeout 30m $$(go list $(call packages,$(UNIT_MODULES)))
	@$(RACETEST) $(SHORT) -count=1 -timeout 20m $(call other_unit,$(WHOLE_MODULES))

.PHONY: race-e2e
race-e2e: $(WHOLE_NEEDS) ## Whole processes under the race detector, the long tests whole.
	@$(RACETEST) -count=1 -p 1 -timeout 55m -skip '$(OPENSTACK_TESTS)|$(OUTAGE_TESTS)|$(SKEW_TESTS)' $(WHOLE) ./test/bench

.PHONY: race-openstack
race-openstack: $(WHOLE_NEEDS) ## The same on the simulator of OpenStack.
	@$(RACETEST) -count=1 -timeout 55m -run '$(OPENSTACK_TESTS)' ./test/e2e

.PHONY: race-outages
race-outages: $(WHOLE_NEEDS) ## The same with two clusters, one or the other away.
	@$(RACETEST) -count=1 -timeout 55m -run '$(OUTAGE_TESTS)' ./test/e2e

.PHONY: skew
skew: $(WHOLE_NEEDS) ## Core and drivers of this release and the one before, in either order.
	@$(RACETEST) -count=1 -timeout 55m -run '$(SKEW_TESTS)' ./test/e2e

.PHONY: oldest-kubernetes
oldest-kubernetes: $(WHOLE_NEEDS) ## Whole processes on the oldest Kubernetes that is supported.
	@tools/controlplane/build.sh $(BIN)/controlplane-1.34 controlplane tools/controlplane-1.34
	@ln -sf $(BIN)/kwok $(BIN)/controlplane-1.34/kwok
	@export MILLWRIGHT_CONTROL_PLANE=$(BIN)/controlplane-1.34; $(RACETEST) -short -count=1 -timeout 55m ./test/e2e

.PHONY: userdata
userdata: packages-userdata build $(TOOLS)/ignition ## User data as cloud-init, Ignition and systemd read it: as root.
	@$(RACETEST) -count=1 -timeout 30m ./test/userdata

.PHONY: docs-test
docs-test: packages-docs $(WHOLE_NEEDS) ## Every command of the documentation, as a reader types it.
	@$(RACETEST) -count=1 -timeout 58m ./test/docs

# PLANTED tries all bugs that are planted in rounds of their own.
.PHONY: chaos-long
chaos-long: build racing ## Random kills on each kind of cloud and cluster, and the planted bugs.
	@$(RACETEST) -count=1 -timeout 20m ./test/chaos/...
	@$(BIN)/chaos -rounds 40
	@$(BIN)/chaos -rounds 15 -layout two-clusters
	@$(BIN)/chaos -rounds 15 -cloud openstack
	@$(BIN)/chaos -rounds 60 -planted all

.PHONY: mutants
mutants: packages-race build ## The harness finds every mutant, the slow ones too.
	@$(RACETEST) -count=1 -timeout 55m ./conformance/... $(patsubst %,./%/...,$(CONFORMING))

# alone = a module of ALONE: all that `make test` does for the modules of the workspace.
alone = cd $(1) && export GOWORK=off && go build -o /dev/null ./... && go mod tidy -diff && $(TOOLS)/golangci-lint run ./... && $(RACETEST) ./...

.PHONY: release-modules
release-modules: build $(TOOLS)/golangci-lint ## The release and its modules, under the race detector.
	@$(call alone,tools/release)

.PHONY: monitoring
monitoring: $(TOOLS)/golangci-lint ## Alerts and dashboards.
	@$(call alone,tools/monitoring)

.PHONY: vet
vet: export GOWORK := off
vet: ## go vet of each module by itself, so that its tests have what they need.
	@for m in $(MODULES) $(ALONE); do echo "$$m: go vet"; (cd $$m && go vet ./...); done

##@ Real VMs

.PHONY: node-image
node-image: packages-qemu ## Build the image of a Node, for VMs of QEMU: Debian 12 with kubelet and containerd. As root.
	@tools/controlplane/build.sh $(BIN) kubelet
	@tools/nodeimage/build.sh $(BIN)/node-image $(BIN)

.PHONY: test-qemu
test-qemu: packages-qemu build racing node-image $(TOOLS)/helm ## Roll, kill and break real VMs of QEMU, boot what users bring, and install the chart, as root: half an hour. RUN=… chooses tests.
	@tools/controlplane/build.sh $(BIN)/kubelet-1.35 kubelet tools/kubelet-1.35
	@$(MAKE) images PLATFORMS=linux/amd64 VERSION=v0.0.0-test RELEASE=$(BIN)/test-release IMAGES='./cmd/millwright-manager ./providers/fake/cmd/millwright-driver-fake'
	@$(RACETEST) -count=1 -timeout 58m $(if $(RUN),-run '$(RUN)') -skip TestOpenStack ./test/realvm

##@ Real OpenStack

# Where the cloud's state, logs and clouds.yaml are. Everything listens on 127.0.0.1.
OPENSTACK_DIR = $(abspath $(or $(DIR),.dev/openstack))
OPENSTACK = OPENSTACK_DIR='$(OPENSTACK_DIR)' OPENSTACK_PROXY='$(BIN)/fault-proxy'

.PHONY: openstack-up
openstack-up: commands ## Bring up real OpenStack services of Debian 12, as root: installs them first. DIR=… says where.
	@$(OPENSTACK) test/openstack/up.sh

.PHONY: openstack-status
openstack-status: ## Show which of its processes run.
	@$(OPENSTACK) test/openstack/ctl.sh status

.PHONY: openstack-down
openstack-down: ## End them. CLEAN=1 removes all they had.
	@$(OPENSTACK) test/openstack/down.sh $(if $(CLEAN),-c)

.PHONY: test-openstack
test-openstack: build racing ## Bring them up, run the tests that need them, end them. KEEP=1 leaves them running.
	@$(OPENSTACK) test/openstack/up.sh
	@export MILLWRIGHT_OPENSTACK='$(OPENSTACK_DIR)/environment.json'; code=0; \
	  $(RACETEST) -count=1 -p 1 -timeout 100m ./providers/openstack/openstacksim/apicases ./providers/openstack/cmd/... ./test/openstack/... || code=$$?; \
	  $(RACETEST) -count=1 -timeout 20m -run RealServices ./providers/openstack/driver || code=$$?; \
	  $(RACETEST) -count=1 -timeout 100m -run OpenStack ./test/e2e || code=$$?; \
	  $(BIN)/chaos -cloud openstack -upstream "$$MILLWRIGHT_OPENSTACK" -rounds 20 -slow 4 || code=$$?; \
	  $(if $(KEEP),,$(OPENSTACK) test/openstack/down.sh || code=$$?;) exit $$code

BOOT_DIR = $(abspath $(or $(DIR),.dev/openstack-boot))
BOOT = OPENSTACK_DIR='$(BOOT_DIR)' OPENSTACK_COMPUTE=libvirt OPENSTACK_NODE_IMAGE='$(BIN)/node-image'

.PHONY: test-openstack-boot
test-openstack-boot: packages-openstack-boot build racing node-image ## Have a server of real Nova, under libvirt, boot and become a Node: as root, 20 minutes.
	@$(BOOT) test/openstack/up.sh install
	@code=0; export $(BOOT) MILLWRIGHT_OPENSTACK_BOOT='$(BOOT_DIR)'; $(RACETEST) -count=1 -timeout 25m -run TestOpenStack ./test/realvm || code=$$?; \
	  $(BOOT) test/openstack/down.sh || code=$$?; exit $$code

##@ Release

# release_build = what to build, for which platforms: executables of the release, each in a folder of its platform.
release_build = for p in $(2); do folder=$(RELEASE)/executables/$${p/\//-}; mkdir -p $$folder; \
	  GOOS=$${p%/*} GOARCH=$${p\#*/} go build -ldflags '-s -w -X main.version=$(VERSION)' -o $$folder/ $(1); done
CREATED = $$(git show --no-patch --format=%ct HEAD)

.PHONY: release
release: $(TOOLS)/release controlplane ## Make all of a release in bin/release: images, downloads, chart, manifests, checksums, tags of Go modules. VERSION, REGISTRY and PUSH as for images.
	@$(MAKE) images
	@$(call release_build,$(DOWNLOADS),$(DOWNLOAD_PLATFORMS))
	@$(TOOLS)/release files --version '$(VERSION)' --registry '$(or $(REGISTRY),localhost)' --created "$(CREATED)" --executables $(RELEASE)/executables --out $(RELEASE)/files \
	  --kubectl $(BIN)/kubectl $(addprefix --platforms ,$(DOWNLOAD_PLATFORMS)) $(addprefix --executable ,$(notdir $(DOWNLOADS)))
	@$(TOOLS)/release modules --version '$(VERSION)' --created "$(CREATED)" --out $(RELEASE)

.PHONY: images
images: $(TOOLS)/release ## Make container images of manager and drivers: VERSION=v0.1.0, REGISTRY=host/path (else localhost), PUSH=1 pushes them.
	@$(call release_build,$(IMAGES),$(PLATFORMS))
	@$(TOOLS)/release images --version '$(VERSION)' --revision '$(REVISION)' --created "$(CREATED)" \
	  $(addprefix --platforms ,$(PLATFORMS)) --executables $(RELEASE)/executables --out $(RELEASE) --registry '$(or $(REGISTRY),$(if $(PUSH),,localhost))' $(if $(PUSH),--push) $(notdir $(IMAGES))

##@ Change

.PHONY: generate
generate: generators ## Generate code from .proto files, and deep copies, CRDs and RBAC from Go.
	@tools/generate.sh

.PHONY: tidy
tidy: ## Format the sources and tidy every go.mod.
	@$(MAKE) $(TOOLS)/golangci-lint $(TOOLS)/buf
	@$(TOOLS)/golangci-lint fmt $(MODULES) $(ALONE)
	@$(TOOLS)/buf format --write
	@go work sync
	@for m in $(MODULES) $(ALONE); do echo "$$m: go mod tidy"; (cd $$m && GOWORK=off go mod tidy); done

.PHONY: clean
clean: ## Remove what was built; Go's own caches stay.
	@rm -rf $(BIN) tools/buf/node_modules $(addprefix $(EXAMPLE_NODE)/,dist node_modules src/gen)

# The rest are parts of the targets above.

.PHONY: controlplane
controlplane:
	@tools/controlplane/build.sh $(BIN)

.PHONY: commands
commands:
	@mkdir -p $(BIN)
	@[ -x $(BIN)/millwright ] || echo "building Millwright from source: about two minutes on two cores, once" >&2
	@$(if $(COMMANDS),go build -o $(BIN)/ $(COMMANDS))

# Millwright's processes with the race detector in them; the tests of whole
# processes run these, and read in their logs what they raced.
.PHONY: racing
racing:
	@mkdir -p $(BIN)/race
	@$(if $(COMMANDS),CGO_ENABLED=1 go build -race -o $(BIN)/race/ $(COMMANDS))

# Core and a driver of the release before this one, for the tests of version skew.
.PHONY: previous
previous:
	@tools/previous/build.sh $(BIN)/previous -race -tags $(TAGS)

$(EXAMPLE_NODE)/dist/built: $(NODE_MODULES) $(wildcard $(EXAMPLE_NODE)/src/*.ts) $(EXAMPLE_NODE)/tsconfig.json $(shell find proto -name '*.proto')
	@cd $(EXAMPLE_NODE) && rm -rf dist src/gen && npm run --silent build && touch dist/built

$(NODE_MODULES): $(addprefix $(EXAMPLE_NODE)/,package.json package-lock.json .npmrc)
	@cd $(EXAMPLE_NODE) && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json

# A module must build for those who import it alone, without the workspace, and require
# what its tests import.
.PHONY: standalone
standalone: export GOWORK := off
standalone:
	@for m in $(MODULES); do echo "$$m: go build, go mod tidy -diff"; \
	  (cd $$m && go build -o /dev/null ./... && go mod tidy -diff); done

# Without the race detector: they start no goroutines, and their properties are tried on hundreds of histories.
.PHONY: pure
pure:
	@$(GOTEST) $(SHORT) -cover -timeout 20m $(patsubst %,./%,$(PURE)) | \
	  awk '{ print } /coverage:/ && !/coverage: 100.0%/ { bad = 1 } \
	    END { if (bad) { print "a pure package has statements that no test covers"; exit 1 } }'

.PHONY: generators
generators: $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc $(TOOLS)/controller-gen

# Tools are built from the modules that pin them, each once: tools/build.sh knows whether a tool is
# current. It keeps them in the user's cache folder.
.PHONY: $(addprefix $(TOOLS)/,golangci-lint helm controller-gen mutate vale ignition deadcode protoc-gen-go protoc-gen-go-grpc release buf)

$(TOOLS)/golangci-lint:
	@tools/build.sh $(TOOLS) tools/lint golangci-lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(TOOLS)/helm:
	@tools/build.sh $(TOOLS) tools/helm helm=helm.sh/helm/v4/cmd/helm

$(TOOLS)/controller-gen:
	@tools/build.sh $(TOOLS) tools/controller-gen controller-gen=sigs.k8s.io/controller-tools/cmd/controller-gen

$(TOOLS)/deadcode:
	@tools/build.sh $(TOOLS) tools/deadcode deadcode=golang.org/x/tools/cmd/deadcode

$(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc &:
	@tools/build.sh $(TOOLS) tools/protoc-gen protoc-gen-go=google.golang.org/protobuf/cmd/protoc-gen-go \
	  protoc-gen-go-grpc=google.golang.org/grpc/cmd/protoc-gen-go-grpc

$(TOOLS)/mutate:
	@tools/build.sh $(TOOLS) tools/gremlins gremlins=github.com/go-gremlins/gremlins/cmd/gremlins mutate=.

# Vale reads source code with tree-sitter, which is C.
$(TOOLS)/vale:
	@CGO_ENABLED=1 tools/build.sh $(TOOLS) tools/prose vale=github.com/vale-cli/vale/v3/cmd/vale

# Its C needs the headers of libblkid; a host without SELinux has no labels to set.
$(TOOLS)/ignition:
	@CGO_ENABLED=1 LDFLAGS='-s -w -X github.com/coreos/ignition/v2/internal/distro.selinuxRelabel=false' \
	  tools/build.sh $(TOOLS) tools/ignition ignition=github.com/coreos/ignition/v2/internal

# Our own tool: Go knows whether it is current.
$(TOOLS)/release:
	@mkdir -p $(TOOLS) && cd tools/release && GOWORK=off go build -o $@ .

# buf comes as an executable: to build it takes minutes. npm checks it by the hash in the lock file.
$(TOOLS)/buf: tools/buf/node_modules/.package-lock.json
	@mkdir -p $(TOOLS) && ln -sf $(CURDIR)/tools/buf/node_modules/@bufbuild/buf-*-*/bin/buf $@

tools/buf/node_modules/.package-lock.json: $(addprefix tools/buf/,package.json package-lock.json .npmrc)
	@cd tools/buf && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json
