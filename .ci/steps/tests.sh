# shellcheck shell=bash
# The tests of the full tier (see CONTRIBUTING.md): with the race detector, without it, and on PostgreSQL.

# The race detector slows tests down several times. It watches tests that start goroutines, in packages whose source has locks, groups
# of goroutines, or atomic values: other packages share no memory between goroutines. The programs of the tests of attacks and nodes
# are built with it, too. Left out are:
not_raced=(
    kontor/modules/app/treetest        # reads sources
    kontor/modules/commands            # runs commands and programs
    kontor/locales                     # reads embedded texts
    kontor/web                         # reads embedded files; web/browser drives Chromium and a program
    kontor/modules/bank/invoices/qrbill     # reads files in child processes, each with one goroutine
)

# Packages whose source starts goroutines, and the beginning of the names of further tests that the race detector watches there.
declare -A raced_more=(
    [kontor/modules/app]=TestScenario_ # each endpoint, beside all jobs
    [kontor/modules/duty/screening]=Test
    [kontor/modules/identity/auth/hashing]=Test
    [kontor/modules/kit/sandbox]=Test
    [kontor/modules/reach/deliveries]=Test
    [kontor/server]=Test
    [kontor/server/sse]=Test
    [kontor/store/backup/continuous]=Test
    [kontor/store/postgres]=Test
    [kontor/store/postgres/internal/bus]=Test
    [kontor/store/postgres/postgrestest]=Test
)

# The packages whose tests run again on PostgreSQL, as the command concurrent takes them. Engines differ in statements, locks and
# transactions: all tests of the packages run that build statements or write transactions of their own, and of the other modules those
# that start goroutines. The other statements of modules are compiled and all endpoints called on PostgreSQL in modules/app
# (TestPortable, TestScenario). The contract of an engine (store/engine/enginetest) and migrations run on both engines in any case.
# The step soak runs all tests of modules on PostgreSQL.
on_postgres=(
    kontor/{store,store/audittrail,store/idempotency,modules/kit/list,modules/kit/records}=Test
    kontor/modules/{app,duty/audit,duty/privacy,reach/deliveries,reach/search}=Test
    kontor/modules/identity/rbac=TestCheck_ # statements with rights
    kontor/modules/{identity/{auth,directory,factors,oidc,serviceaccounts},bank/{chats,customers,files,tasks},duty/screening,reach/notifications}
)

# Tests of modules that need not run on PostgreSQL: two nodes on one database run in the step race, and the others compare rules of
# inputs and tables of the program, which no engine changes.
not_on_postgres='^(TestNodes_|TestForms_|TestInputs_|TestIDs_|TestTable_|TestQuery_|TestHostile_Configurations)'

# packages: lists all packages with tests.
packages() { go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...; }

# raced: lists the packages with tests for the race detector, as the command concurrent takes them.
raced() {
    local name
    grep -rlE --include='*.go' --exclude='*_test.go' 'sync\.(Mutex|RWMutex|WaitGroup)|atomic\.[A-Z]' modules server store web locales |
        xargs -n 1 dirname | sort -u | sed 's|^|kontor/|' | grep -xF "$(packages)" |
        grep -vE "^($(IFS='|' && echo "${not_raced[*]}"))(/|\$)" | while read -r name; do
        echo "$name${raced_more[$name]:+=${raced_more[$name]}}"
    done
}

# run_tests ARGUMENTS…: runs go test and prints a summary. A skipped test fails the full tier: the step install installs all tools.
# The linters include go vet. The programs are linked without the tables of a debugger, which saves a quarter of the time of linking.
# Tests keep their files in TMPDIR; GOTMPDIR is for the compiler alone (see use_memory).
run_tests() {
    local report postgres
    report=$(built report)
    postgres=$(built with-postgres)
    export KONTOR_TEST_PATIENCE="${KONTOR_TEST_PATIENCE:-5}" KONTOR_TEST_BINARY="$KONTOR_CI_WORK/kontor" \
        KONTOR_TEST_RACE_BINARY="$KONTOR_CI_WORK/kontor-race"
    KONTOR_TEST_OIDC_PROVIDER=$(npm_packages oidc-provider modules/identity/oidc/testdata/provider)
    KONTOR_TEST_WEBHOOK_LIBRARIES=$(npm_packages webhook-libraries modules/reach/webhooks/testdata/verify)
    export KONTOR_TEST_OIDC_PROVIDER KONTOR_TEST_WEBHOOK_LIBRARIES
    "$postgres" go test -exec "env -u GOTMPDIR" -vet=off -ldflags=-w -timeout 40m -json "$@" 2>&1 | "$report" "${KONTOR_CI_COUNTS:-/dev/null}"
}

# shellcheck disable=SC2046 # one word for each package
step_race() {
    local concurrent
    concurrent=$(built concurrent)
    with_race_detector
    KONTOR_TEST=full run_tests -race -run "$("$concurrent" tests $(raced))" $("$concurrent" packages $(raced))
}

# Runs the other tests of these packages.
# shellcheck disable=SC2046
step_unwatched() {
    local concurrent
    concurrent=$(built concurrent)
    KONTOR_TEST=full run_tests -skip "$("$concurrent" tests $(raced))" $("$concurrent" others $(raced))
}

# The packages that take the longest come first, and three run at a time, because they often wait.
# shellcheck disable=SC2046
step_tests() {
    KONTOR_TEST=full run_tests -p 3 ./web/browser ./modules/commands/systemtest/{nodes,hostile,crash,bills} \
        $(packages | grep -vxF "$(raced | cut -d = -f 1)")
}

# shellcheck disable=SC2046
step_postgres() {
    local concurrent
    concurrent=$(built concurrent)
    KONTOR_TEST_ENGINE=postgres run_tests -run "$("$concurrent" tests "${on_postgres[@]}")" -skip "$not_on_postgres" \
        $("$concurrent" packages "${on_postgres[@]}")
}

# Runs the unit tests of the console's modules; one of them rejects circular imports.
step_console() { node --test --test-timeout=60000 web/test/; }

# Runs the language rules of CONTRIBUTING.md alone, which is fast. The step tests includes them.
step_words() { go test -count=1 ./modules/app/treetest -run '^TestWords_'; }

# Runs the packages with random tests with many more rounds, all tests of modules on PostgreSQL, and each fuzz target for $FUZZTIME.
step_soak() {
    local names
    names=$(grep -rl --include='*_test.go' 'testenv\.\(Rounds\|Checks\|Runs\)' . | xargs -n 1 dirname | sort -u)
    # shellcheck disable=SC2086 # one word for each package
    KONTOR_TEST=soak run_tests -timeout 12h $names
    KONTOR_TEST_ENGINE=postgres run_tests -skip "$not_on_postgres" ./modules/...
    make --no-print-directory fuzz FUZZTIME="${FUZZTIME:-3m}"
}
