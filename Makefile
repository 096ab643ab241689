# Commands for contributors. They need Go; "make lint" and "make ci" install further tools.

FUZZTIME ?= 20s
RELEASE  ?=
LDFLAGS  := -s -w $(if $(RELEASE),-X kontor/modules/commands.release=$(RELEASE))

TARGETS  ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64

.PHONY: help run test race soak test-console lint lint-console words lint-openapi clients check-clients keep-api check-api fuzz bench bench-all bench-console bench-lists bench-names bench-nodes dataset golden screenshots build release image ci

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: ## start the server with its data in ./data
	go run . serve

test: ## run the tests of the default tier, which need Go alone
	@go test ./...; code=$$?; \
	echo "Not run: the full tier (make ci), and the soak tier (make soak). See \"Tests\" in CONTRIBUTING.md."; exit $$code

race: ## run the tests of the default tier with the race detector
	go test -race ./...

soak: ## repeat random tests many more times, and run each fuzz target for FUZZTIME (3m); takes hours
	.ci/run soak

test-console: ## run the unit tests of the console's modules; needs Node.js
	.ci/run console

lint: ## format check and the linters, which include go vet
	.ci/run format
	.ci/run golangci

words: ## check that comments, documents and texts are in plain English (see CONTRIBUTING.md)
	.ci/run words

lint-console: ## lint the console's JavaScript with eslint; needs npm
	.ci/run eslint

clients: ## generate the Go client (server/client) and the TypeScript client (web/client) from the API document
	go test ./server/client/generate -count=1 -run TestClients_AreGenerated -update

check-clients: ## generate clients with three generators and run them against a server; needs npm
	.ci/run clients

lint-openapi: ## check the API document with redocly and spectral; needs npm
	.ci/run openapi

keep-api: ## keep the API document as that of RELEASE=1.2.3; CI rejects later changes that break it and are not announced
	@test -n "$(RELEASE)" || { echo "name the version: make keep-api RELEASE=1.2.3"; exit 1; }
	@mkdir -p testdata/openapi
	go test ./server/openapi -count=1 -run '^TestDocument_IsValid' -document "$(CURDIR)/testdata/openapi/$(RELEASE).json"
	gzip -9nf testdata/openapi/$(RELEASE).json

check-api: ## compare the API document with that of the last version; needs Node.js
	.ci/run compatibility

fuzz: ## run every fuzz target for FUZZTIME (20s) each
	@set -e; grep -rn --include='*_test.go' -oE '^func Fuzz[A-Za-z0-9_]+' . | \
	while IFS=: read -r file _ name; do \
		target=$${name#func }; package=$$(dirname "$$file"); \
		echo "==> $$package $$target"; \
		go test "$$package" -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=5x; \
	done

bench: ## measure the figures that Kontor is judged by, in one table; DIR is a data set, otherwise a small one is made
	go run ./modules/demo/benchtable -data.dir "$(DIR)"

bench-all: ## run all benchmarks
	KONTOR_TEST=full go test -run='^$$' -bench=. -benchmem ./...

bench-console: ## measure the console on a slow network (400 ms, 1.6 Mbit/s): when the sign-in and the first list are usable, bytes and requests
	@KONTOR_TEST=full go test ./web/browser -run TestSlowNetwork -count=1 -v | grep -E ' ms |^(FAIL|ok|---)'

bench-names: ## print precision, recall and F1 of the matcher of names for the public test sets, and the time of a check
	@go test ./modules/kit/names -run='^$$' -bench='BenchmarkQuality' -benchtime=1x | grep -v -E '^(goos|goarch|pkg|cpu|PASS|ok|Benchmark)'
	@go test ./modules/kit/names -run='^$$' -bench='BenchmarkSearch' -benchtime=2000x | grep '^Benchmark'

bench-nodes: ## compare nodes on PostgreSQL with SQLite and a bare Fiber handler, in one table; needs PostgreSQL
	KONTOR_TEST=full go test -run='^$$' -bench=BenchmarkNodes -benchtime=1x -timeout=30m ./modules/commands/systemtest/nodes

dataset: ## make a large data set for measurements in the directory DIR
	go run ./modules/demo/dataset -data.dir "$(DIR)"

bench-lists: ## measure every list of a server at 127.0.0.1:8080 that serves a data set
	go run ./modules/demo/benchtable -url http://127.0.0.1:8080

golden: clients ## update the golden lists of endpoints, operations and record forms, the README's table of settings, and the clients
	go test ./modules/app -run 'TestTable_MatchesTheGoldenFile|TestForms_MatchTheGoldenFile|TestEvents_EveryChangeIsOne' -update
	go test ./server/openapi -run TestDocument_HasTheGoldenOperations -update
	go test ./modules/app/treetest -run TestReadme_ListsTheSettings -update
	go test ./licences -run TestThirdParty -update

screenshots: ## update the screenshots in docs/images from a new demo database; needs chromium
	go run ./web/browser/screenshots

build: ## build ./kontor; RELEASE=1.2.3 sets the version
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o kontor .

release: ## build the archives of RELEASE=1.2.3 with checksums and bills of materials into ./dist; TARGETS=linux/amd64 limits them
	go run -C .ci/release . -source ../.. -out ../../dist -version "$(RELEASE)" -targets "$(TARGETS)"

image: ## build the container image "kontor" (needs Docker)
	docker build --build-arg RELEASE=$(RELEASE) -t kontor .

ci: ## run all checks of CI, with the full tier of the tests
	.ci/run
