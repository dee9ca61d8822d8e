# make check is what CI runs: Go, and for the web page Node and a browser. The rest needs Go alone.

FUZZTIME ?= 5s

.PHONY: check test race lint fuzz faults bench bench-postgres page build release demo day update clean

check: ## everything that CI checks
	.ci/run

test: ## the tests
	go test -timeout 20m ./...

race: ## the tests, with the race detector
	GORACE=atexit_sleep_ms=0 go test -race ./...

lint: ## gofmt, go vet, staticcheck and the arrows between layers
	@test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	go test -run 'Arrow|AnAgentCannot' .

fuzz: ## every fuzz target for $(FUZZTIME)
	.ci/fuzz $(FUZZTIME)

faults: ## the faults of a store in a database, a hundred times as many as in the tests, and a fleet with 300 runs; half an hour
	WF_FAULTS=1 go test -count=1 -timeout 3h -v -run 'KilledPrimary|Histories|Promotion|ManyCommits' ./pgstore
	WF_FAULTS=1 go test -count=1 -timeout 1h -v -run AFleet ./cmd/wf

bench: ## speed and memory, each beside a bare variant of the same run
	go test -run '^$$' -bench . ./engine ./cas ./agentkit ./agentkit/memory ./hub/replay ./hub/relay ./daemon ./cmd/internal/chat

bench-postgres: ## steps per second of a store in PostgreSQL beside those of DBOS, in turns at one server on a disk; 2 minutes
	rm -rf bin/dbos && mkdir -p bin/dbos && cp engine/testdata/dbos/* bin/dbos && cd bin/dbos && npm install --ignore-scripts --no-fund --no-audit
	WF_DBOS=$(CURDIR)/bin/dbos go test -count=1 -v -run BesideDBOS ./engine
	go test -run '^$$' -bench TableBytes -benchtime 1x ./engine
	go test -run '^$$' -bench 'Commit|Idle|Claims' ./pgstore

page: ## the web page, from its sources
	cd hub/web && npm ci --ignore-scripts --no-fund --no-audit && npm run build

build: ## bin/wf, without the C library, which costs a tenth of its start
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/wf ./cmd/wf

release: ## dist/: archives, Debian packages and an image for containers, with their hashes; offline
	go run ./release

demo: ## a workflow repairs a failing Go module
	go run ./cmd/wf demo

day: build ## a day of operating wf, told as it goes: limits, webhooks, approvals, a disaster, a restore; 4 minutes
	WF_DAY=$(CURDIR)/bin/wf go test -count=1 -run 'TestADayOfOperation$$' -v ./cmd/wf

update: ## what is written from the code: schemas of the API and types of the page, the language, the README's screen
	go run ./hub/server/schemas
	go test ./workflows -run Schema -update
	go test ./engine/lang -run ThePageOfTheLanguage -update
	go test ./cmd/wf -run ReadmeDemo -update

clean: ## what build and release leave
	rm -rf bin dist
