# All commands of a developer. CI runs "make test" and "make check" (.ci/run). Both need only Go. If PostgreSQL is
# installed, both start a separate cluster (scripts/with-postgres).

# Without paths in what it compiles, Go compiles nothing again for a copy of the tree. Some tests build such copies.
export GOFLAGS := -trimpath $(GOFLAGS)

.PHONY: help run serve release release-test bounds build test nosocket check lint openapi pages e2e mutations allocations budgets long pictures figures figures-pages figures-people figures-search figures-bookings figures-automations bench fuzz generate assets s3 alerts

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## try the product: demo data, messages within seconds, a curl line to paste
	go run ./cmd/puntuale demo

serve: ## start a server on ./puntuale-data whose sessions are sandboxes
	go run ./cmd/puntuale serve --sandbox

release: ## make the files of a release in dist/: make release VERSION=1.2.3
	GOFLAGS= GOTOOLCHAIN=$$(sed -n 's/^const goVersion = "\(.*\)"/\1/p' scripts/release/main.go) go -C scripts/release run . -version "$(VERSION)" -dist "$(CURDIR)/dist" $(RELEASEFLAGS)

release-test: ## test the release: the same bytes twice, and the packages in a Debian of its own, with the commands of the manuals: install, upgrade, way back, a dead disk, purge
	scripts/with-programs 'mmdebstrap systemd-container=mmdebstrap --version && systemd-nspawn --version' 'minisign=minisign -v' 'skopeo=skopeo --version' \
		'rpm=rpm --version' 'bubblewrap=bwrap --version' -- scripts/releasetest

bounds: ## make the archive of the last commit for Linux on amd64, and check that the program, the archive and a start are within the bounds of a release; test the command
	dist=$$(mktemp -d) && trap 'rm -rf "$$dist"' EXIT && $(MAKE) -s release VERSION=0.0.0 RELEASEFLAGS="-targets linux/amd64 -kinds archive -dist $$dist" && \
		GOFLAGS= go -C scripts/release test -count=1 . -args -components "$$dist/puntuale_0.0.0_sbom.cdx.json"

build: ## build bin/puntuale
	go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/puntuale ./cmd/puntuale

test: ## run unit tests, tests on both databases, and tests of pages in a browser, with the race detector
	scripts/with-chromium scripts/with-postgres go run ./scripts/gotest -race -shuffle=on -vet=off -timeout 30m ./...

nosocket: ## vet and build without linked numbers, and check that their libraries are left out (one is under the GPL)
	go vet -tags nosocket ./...
	go build -tags nosocket -o /dev/null ./cmd/puntuale
	@if go list -deps -tags nosocket ./cmd/puntuale | grep 'go.mau.fi'; then echo "the build tag nosocket leaves these in" >&2; exit 1; fi

check: lint openapi bounds e2e mutations allocations ## run what "make test" leaves out: linters, the API's documents, the size and the start of a release, crashes and many nodes of the built binary, mutations, allocations

lint: ## run gofmt and the linters
	scripts/lint

openapi: ## check the OpenAPI documents with redocly and spectral, and compile a generated TypeScript client
	scripts/with-programs 'nodejs npm=npm --version' -- scripts/openapi

# The tests that draw pages on a screen. "make test" runs all other tests, and they do not depend on the screen.
SCREENTESTS = awk '/^func Test/ {name = $$2; sub(/\(.*/, "", name)} /(onScreens|onForms|screens)\(t/ {print name}' internal/web/*_test.go | sort -u | paste -sd '|'

pages: ## run browser tests on the screens that "make test" leaves out, or on all eight screens with SCREENS=all
	PUNTUALE_SCREENS=$(or $(SCREENS),other) scripts/with-chromium scripts/with-postgres \
		go run ./scripts/gotest -count=1 -shuffle=on -timeout 30m -run "^($$($(SCREENTESTS)))$$" ./internal/web

e2e: ## test the built binary from outside
	scripts/with-programs 'curl=curl --version' 'python3=python3 --version' 'nodejs=node --version' 'iproute2=ip -V' \
		'nginx-light=PATH=$$PATH:/usr/sbin nginx -v' 'caddy=caddy version' \
		'php-cli php-curl=php -r "curl_init();"' 'radicale=radicale --version' -- scripts/with-chromium scripts/with-postgres \
		go run ./scripts/gotest -tags e2e -count=1 -timeout 35m ./internal/e2e

mutations: ## check that each guarantee's test fails if the guarantee's mechanism is removed
	scripts/with-postgres scripts/mutations

allocations: ## check that the hot path allocates no more than its budgets; without the race detector, which itself allocates
	scripts/with-postgres go run ./scripts/gotest -count=1 ./internal/budget

budgets: ## run the benchmarks of the hot path, for benchstat, and compare them with their budgets (BUDGETFLAGS=-renew writes new baselines)
	scripts/with-postgres go test -run '^$$' -bench HotPath -benchtime 100ms -count 5 -timeout 30m ./internal/budget -args -budgets $(BUDGETFLAGS)

long: ## run long tests, up to two hours: many nodes with the default lease; each fault several times; a hundred races for the daily cap; a hundred kills of each of four servers (with an Official number, with a gateway, with devices, and while people write); 5,300 hostile connections for minutes; one hostile key against each shared thing; campaigns of 100,000 recipients; 100,000 events to webhooks; kills while rules act; more simulated years of automations; a thousand random histories of results; ten years of months that two servers close at the same moment
	PUNTUALE_LONG=1 scripts/with-postgres go test -v -tags e2e -count=1 -timeout 120m \
		-run 'UnderLoad|Histories|CapIsExact|OfficialKilled|RepliesKilled|GatewayKilled|DevicesKilled|DeviceProgramKilled|CampaignKilled|CampaignTakenOver|EventsKilled|EventsTakenOver|AutomationsKilled|AutomationsTakenOver|HostileMix|HostileKey|BookingsKilled|AnswersKilled|CalendarsKilled' ./internal/e2e
	PUNTUALE_LONG=1 scripts/with-postgres go test -v -count=1 -timeout 30m -run KilledWithManyInFlight ./internal/connector/official
	PUNTUALE_LONG=1 scripts/with-postgres go test -v -count=1 -timeout 30m -run TestYear ./internal/automation/yeartest
	PUNTUALE_LONG=1 scripts/with-postgres go test -v -count=1 -timeout 30m -run TestCutOffAtEveryStatement ./internal/store/migration
	PUNTUALE_LONG=1 scripts/with-postgres go test -v -count=1 -timeout 90m -run 'TestResultsAreExact|TestTwoServers' ./internal/store

s3: ## store backups and files in a real S3 service; it is built from source once, in about four minutes
	scripts/with-s3 go run ./scripts/gotest -tags s3 -count=1 -run TestRealS3 ./internal/backup ./internal/objectstore ./cmd/puntuale

alerts: ## check the alerts and the dashboard of deploy/ with Prometheus' promtool, cause each alert on a real server, and let an hour pass in which none may fire; as root, because one cause is a small disk
	scripts/with-promtool scripts/with-postgres go run ./scripts/gotest -tags promtool -count=1 -parallel 8 -timeout 20m -run TestPromtool ./cmd/puntuale

bench: ## measure the product and its peers on a disk: make bench BENCHFLAGS=-quick
	PUNTUALE_POSTGRES_FOLDER=$${PUNTUALE_POSTGRES_FOLDER:-$${TMPDIR:-/tmp}} scripts/with-programs 'redis-server=redis-server --version' -- \
		scripts/with-postgres go -C bench run . $(or $(BENCHFLAGS),-write ../docs)

figures: ## measure several nodes: takeover after kill -9, lateness during a rolling restart, rates with 1 and 3 nodes; a backup of 1,000,000 messages, or as many as PUNTUALE_BACKUP says, and its restore
	PUNTUALE_POSTGRES_FOLDER=$${TMPDIR:-/tmp} scripts/with-postgres go test -v -tags 'e2e figures' -count=1 -timeout 80m \
		-run Figure ./internal/e2e

figures-pages: ## measure the time of every dashboard page with 100,000 and 1,000,000 stored messages, on both databases
	scripts/with-postgres go test -v -tags figures -count=1 -timeout 60m -run FigurePages ./internal/web

figures-people: ## measure the time of lists and searches with 1,000,000 contacts and with 1,000,000 replies, on both databases
	scripts/with-postgres go test -v -tags figures -count=1 -timeout 30m -run 'TestContactFigures|TestReplyFigures' ./internal/store

figures-search: ## measure searches with 1,000,000 contacts and messages of one client, reports of a year, and what counting costs, on both databases
	PUNTUALE_POSTGRES_FOLDER=$${TMPDIR:-/tmp} scripts/with-postgres go test -v -tags figures -count=1 -timeout 30m -run TestSearchFigures ./internal/httpapi
	PUNTUALE_POSTGRES_FOLDER=$${TMPDIR:-/tmp} scripts/with-postgres go test -v -tags figures -count=1 -timeout 60m -run 'TestReportFigures|TestNotingFigures' ./internal/store/result

figures-bookings: ## measure calls for bookings, lists, comparisons and replans, on both databases: make figures-bookings PUNTUALE_REPLAN=100000
	PUNTUALE_REPLAN=$(PUNTUALE_REPLAN) PUNTUALE_POSTGRES_FOLDER=$${TMPDIR:-/tmp} scripts/with-postgres go test -v -tags figures -count=1 -timeout 90m -run 'TestBookingFigures|TestReplanFigures' ./internal/httpapi

figures-automations: ## measure how many birthdays and replies rules handle in a second, on both databases
	scripts/with-postgres go test -v -tags figures -count=1 -timeout 30m -run TestMany ./internal/automation

fuzz: ## run every fuzz target for a time: make fuzz FUZZTIME=5m
	@go list -f '{{.ImportPath}}' ./... | while read -r pkg; do \
		for target in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(or $(FUZZTIME),30s) "$$pkg" || exit 1; \
		done; \
	done

pictures: ## make the pictures of docs/images, from a sandbox server in Chromium
	PUNTUALE_PICTURES=$(CURDIR)/docs/images scripts/with-chromium go run ./scripts/gotest -tags 'e2e pictures' -count=1 -run TestPictures ./internal/e2e

generate: ## generate the code of the pages' templates, and the settings table of docs/operate.md
	scripts/templates
	UPDATE=1 go test -run '^TestReferenceIsCurrent$$' ./cmd/puntuale

assets: ## download the pages' files of other projects again with npm, and compare them with their manifest
	for folder in internal/httpapi/docs/static internal/web/static internal/web/testdata; do go run ./scripts/assets fetch $$folder || exit 1; done
	go run ./scripts/assets
