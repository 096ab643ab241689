# shellcheck shell=bash
# The tests of the full tier (see CONTRIBUTING.md): with the race detector, without it, and on PostgreSQL.

# The race detector watches packages whose source has locks, groups of goroutines, or atomic values: others share no memory between
# goroutines. It slows tests down several times. Left out are:
not_raced=(
    kontor/modules/app/treetest        # reads sources
    kontor/modules/commands            # runs commands and programs; the tests of attacks and nodes drive one that was built with -race
    kontor/locales                     # reads embedded texts
    kontor/web                         # reads embedded files; web/browser drives Chromium and a program
    kontor/modules/bank/invoices/qrbill     # reads files in child processes, each with one goroutine
    kontor/modules/kit/types           # only computes
)

# Tests of watched packages that run without the race detector: they compute in one goroutine, send one request after another, or drive
# processes and engines.
unwatched='TestPortable_|TestDatabase_FlippedByteIsAnError|TestCheck_Agrees'
unwatched+='|TestExplain_Agrees|TestReview_OfManyRights|TestReview_RemovesAThousand|TestTable_Rejects|TestInputs_|TestIDs_'
unwatched+='|TestForms_|TestEvents_EveryChangeIsOne|TestImport_TheCustomersOfTheDemoComeBack|TestSignInMethods_|TestErasure_ClearsEveryTextColumn|TestErasure_OfAHugeCustomer'
unwatched+='|TestExport_MakesTheSameBank|TestTrigger_EachScenario|TestHostile_ConfigurationsAreRejected'

# The packages whose tests run again on PostgreSQL: their statements, locks or transactions differ by engine. The contract of an
# engine (store/engine/enginetest) and migrations run on both engines in any case. The modules left out only create, read, change
# and list records through kit/records and kit/list; TestScenario in modules/app calls each of their endpoints on PostgreSQL.
on_postgres=(
    ./store ./store/audittrail ./store/idempotency
    ./modules/kit/list ./modules/kit/records
    ./modules/app ./modules/duty/audit ./modules/identity/auth ./modules/bank/chats ./modules/bank/customers ./modules/identity/directory ./modules/bank/files
    ./modules/reach/notifications ./modules/identity/oidc ./modules/duty/privacy ./modules/duty/screening ./modules/identity/rbac ./modules/reach/search ./modules/identity/serviceaccounts
    ./modules/reach/webhooks
)

# packages yes|no: lists the packages whose tests run with, or without, the race detector.
packages() {
    local shares
    shares=$(grep -rlE --include='*.go' --exclude='*_test.go' 'sync\.(Mutex|RWMutex|WaitGroup)|atomic\.[A-Z]' modules server store web locales | xargs -n 1 dirname | sort -u)
    go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... |
        awk -v wanted="$1" -v left_out="${not_raced[*]}" -v shares="$shares" '
            BEGIN { n = split(left_out, names, " "); m = split(shares, dirs, "\n"); for (i = 1; i <= m; i++) raced["kontor/" dirs[i]] = 1 }
            {
                answer = $1 in raced ? "yes" : "no"
                for (i = 1; i <= n; i++) if (index($1 "/", names[i] "/") == 1) answer = "no"
                if (answer == wanted) print $1
            }'
}

# run_tests ARGUMENTS…: runs go test and prints a summary. A skipped test fails the full tier: the step install installs all tools.
# The linters include go vet.
run_tests() {
    local report postgres
    report=$(built report)
    postgres=$(built with-postgres)
    export KONTOR_TEST_PATIENCE="${KONTOR_TEST_PATIENCE:-5}" KONTOR_TEST_BINARY="$KONTOR_CI_WORK/kontor" \
        KONTOR_TEST_RACE_BINARY="$KONTOR_CI_WORK/kontor-race"
    KONTOR_TEST_OIDC_PROVIDER=$(npm_packages oidc-provider modules/identity/oidc/testdata/provider)
    KONTOR_TEST_WEBHOOK_LIBRARIES=$(npm_packages webhook-libraries modules/reach/webhooks/testdata/verify)
    export KONTOR_TEST_OIDC_PROVIDER KONTOR_TEST_WEBHOOK_LIBRARIES
    "$postgres" go test -vet=off -timeout 40m -json "$@" 2>&1 | "$report" "${KONTOR_CI_COUNTS:-/dev/null}"
}

# shellcheck disable=SC2046 # one word for each package
step_race() {
    with_race_detector
    KONTOR_TEST=full run_tests -race -skip "^($unwatched)" $(packages yes)
}

# shellcheck disable=SC2046
step_unwatched() {
    KONTOR_TEST=full run_tests -run "^($unwatched)" $(grep -rlE --include='*_test.go' "^func ($unwatched)" modules server store |
        xargs -n 1 dirname | sed 's|^|kontor/|' | sort -u | grep -xF "$(packages yes)")
}

# The packages that take the longest come first, and three run at a time, because they often wait.
# shellcheck disable=SC2046
step_tests() {
    KONTOR_TEST=full run_tests -p 3 ./web/browser ./modules/commands/systemtest/{nodes,hostile,crash,bills} $(packages no)
}

# Two nodes on one database run in the step race. The other tests left out compare rules of inputs and tables of the program, which no
# engine changes.
step_postgres() {
    KONTOR_TEST_ENGINE=postgres run_tests -skip '^(TestNodes_|TestForms_|TestInputs_|TestIDs_|TestTable_|TestQuery_|TestHostile_Configurations)' \
        "${on_postgres[@]}"
}

# Runs the unit tests of the console's modules; one of them rejects circular imports.
step_console() { node --test --test-timeout=60000 web/test/; }

# Runs the language rules of CONTRIBUTING.md alone, which is fast. The step tests includes them.
step_words() { go test -count=1 ./modules/app/treetest -run '^TestWords_'; }

# Runs the packages with random tests with many more rounds, and each fuzz target for $FUZZTIME.
step_soak() {
    local names
    names=$(grep -rl --include='*_test.go' 'testenv\.\(Rounds\|Checks\|Runs\)' . | xargs -n 1 dirname | sort -u)
    # shellcheck disable=SC2086 # one word for each package
    KONTOR_TEST=soak run_tests -timeout 12h $names
    make --no-print-directory fuzz FUZZTIME="${FUZZTIME:-3m}"
}
