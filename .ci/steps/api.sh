# shellcheck shell=bash
# The API document and its clients.

# document PATH: writes the API document.
document() { go test ./server/openapi -vet=off -count=1 -run '^TestDocument_IsValid' -document "$1"; }

# Checks the API document with the recommended rules of two linters. A warning fails the step.
#
# The rule no-ambiguous-paths is off. The specification of the API has both /v1/users/{id}/credentials and
# /v1/users/credentials/{cred_id}; in the router a fixed segment takes precedence over a parameter. The rules operation-4xx-response
# and no-unused-components are off: all errors are the response "default" (docs/adr/0018-shape-of-the-api-document.md), and
# members that start with x- refer to the schemas of stacked pages and of stream frames.
step_openapi() {
    local work dir
    dir=$(npm_packages openapi .ci/openapi)
    work=$(mktemp -d)
    temporary+=("$work")
    document "$work/openapi.json"
    echo 'extends: ["spectral:oas"]' >"$work/spectral.yaml"
    "$dir/node_modules/.bin/spectral" lint "$work/openapi.json" --ruleset "$work/spectral.yaml" --fail-severity warn --quiet
    REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true "$dir/node_modules/.bin/redocly" lint "$work/openapi.json" \
        --extends recommended --skip-rule no-ambiguous-paths --skip-rule operation-4xx-response \
        --skip-rule no-unused-components >"$work/redocly" 2>&1 || { cat "$work/redocly"; return 1; }
    if grep -q 'Warning was generated' "$work/redocly"; then
        cat "$work/redocly"
        echo "reason: redocly has warnings"
        return 1
    fi
}

# Compares the API document with that of the last version, and fails for a breaking change that the changelog does not announce.
# "make keep-api" keeps the document of a version. Further values of an enumeration in answers, such as a new error code, break no
# promise (docs/api.md): .ci/oasdiff_levels.txt makes them a warning. So it does with a minimum length, as the tool itself does with
# maximum lengths and patterns: the document derives them from the rules, which were there before.
step_compatibility() {
    local bin last work
    bin=$(tool oasdiff "$oasdiff_version" github.com/oasdiff/oasdiff)
    last=$(find testdata/openapi -name '*.json.gz' | sort -V | tail -n 1)
    work=$(mktemp -d)
    temporary+=("$work")
    node --test .ci/announced.test.mjs >"$work/tests" || { cat "$work/tests"; return 1; }
    document "$work/openapi.json" >"$work/written" || { cat "$work/written"; return 1; }
    gzip -dc "$last" >"$work/last.json"
    OASDIFF_NO_TELEMETRY=1 "$bin" breaking "$work/last.json" "$work/openapi.json" --severity-levels .ci/oasdiff_levels.txt --format json >"$work/changes.json"
    echo "compared with $last"
    node .ci/announced.mjs "$work/changes.json" CHANGELOG.md
}

client_password='correct horse battery staple'
client_key='a-key-of-the-tests-0123456789'

# Installs both clients from a running server in empty folders, and runs their examples, the programs of docs/samples and the tests
# of the TypeScript client. The tests of server/client/generate compare the clients with the API document.
#
# Also generates clients from the API document with three generators of others, compiles them, and runs a small program with each.
# .ci/clients/go is a module of its own, so that the generator does not become a dependency of Kontor.
step_clients() {
    local work dir bin port pid code=0
    work=$(mktemp -d)
    temporary+=("$work")
    bin=$(built kontor)
    dir=$(npm_packages clients .ci/clients)
    document "$work/openapi.json"
    cp -r .ci/clients "$work"
    ln -s "$dir/node_modules" "$work/clients/node_modules"
    build_go_client "$work" || return 1
    build_typescript_clients "$work" || return 1
    build_own_clients "$work" || return 1

    port=$(free_port)
    (cd "$work" && KONTOR_ADMIN_EMAIL=admin@kontor.localhost KONTOR_ADMIN_PASSWORD="$client_password" KONTOR_API_KEY="$client_key" \
        exec "$bin" serve --server.listen "127.0.0.1:$port" --data.dir "$work/data" --rate_limits.enabled=false) >"$work/out" 2>"$work/err" &
    pid=$!
    wait_ready "$port" "$pid" && run_clients "$work" "http://127.0.0.1:$port" || code=1
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
    [[ $code -eq 0 ]] || tail -n 20 "$work/err"
    return "$code"
}

# Compiles the TypeScript client again, and compares the result with the committed modules.
build_own_clients() {
    local dir
    dir=$(npm_packages web-client web/client) || return 1
    cp -r web/client "$1/web-client"
    (cd "$1/web-client" && find dist ! -name 'operations.*' ! -name 'types.d.ts' -type f -delete && "$dir/node_modules/.bin/tsc" -p tsconfig.json) || return 1
    if ! diff -r web/client/dist "$1/web-client/dist"; then
        echo 'reason: web/client/dist differs from its sources: run "npm ci && npm run build" in web/client, and commit the result'
        return 1
    fi
}

# install_clients WORK ADDRESS: installs both clients from a running server in empty folders, and compiles the examples and the
# programs of docs/samples with them.
install_clients() {
    local dir compile
    dir=$(npm_packages web-client web/client) || return 1
    compile=("$dir/node_modules/.bin/tsc" --strict --noUncheckedIndexedAccess --target es2022 --module nodenext --lib 'es2023,dom,dom.iterable'
        --typeRoots "$dir/node_modules/@types" --types node)
    mkdir -p "$1/program" "$1/go-program/mirror" "$1/go-program/example"
    echo '{"name": "program", "private": true, "type": "module"}' >"$1/program/package.json"
    cp -r web/client/example.ts web/client/test docs/samples/portal/portal.ts "$1/program"
    (cd "$1/program" && npm install --silent --no-fund --no-audit "$2/sdk/kontor-client.tgz" && "${compile[@]}" example.ts portal.ts) || return 1
    cp docs/samples/mirror/main.go "$1/go-program/mirror"
    sed 's|"kontor/server/client"|"kontor.local/client"|' server/client/example/main.go >"$1/go-program/example/main.go"
    (cd "$1/go-program" && export GOWORK=off GOFLAGS=-modcacherw GOTOOLCHAIN=local GOMODCACHE="$1/modules" GOPROXY="$2/sdk/go" GONOSUMDB=kontor.local &&
        go mod init bank.example/programs && go get kontor.local/client@latest && go build -o "$1" ./mirror ./example)
}

# check_samples WORK: runs the programs of docs/samples. The example of the Go client has created Anna Keller before.
check_samples() {
    local port pid code=0
    (cd "$1" && ./mirror --once && grep -q '"Keller, Söhne"' customers.json && node program/example.js && ./mirror --once) || return 1
    if [[ $(grep -c '"Keller, Söhne"' "$1/customers.json") -ne 2 ]]; then
        echo "reason: the mirror lacks the second customer"
        return 1
    fi
    port=$(free_port)
    PORT=$port node "$1/program/portal.js" >"$1/portal" 2>&1 &
    pid=$!
    wait_ready "$port" "$pid" / && check_portal "$1" "http://127.0.0.1:$port" || code=1
    kill -TERM "$pid" || true
    wait "$pid" || true
    [[ $code -eq 0 ]] || cat "$1/portal"
    return "$code"
}

# check_portal WORK ADDRESS: signs in with a wrong and with the right password, reads the page, and signs out.
check_portal() {
    local jar="$1/cookies"
    curl -sS "$2/" | grep -q 'name="password"' || return 1
    curl -sS --data-urlencode "login=$KONTOR_USER" -d password=wrong "$2/sign-in" | grep -q 'role="alert"' || return 1
    curl -sS -c "$jar" -o /dev/null --data-urlencode "login=$KONTOR_USER" --data-urlencode "password=$KONTOR_PASSWORD" "$2/sign-in" || return 1
    curl -sS -b "$jar" "$2/" | grep -q 'Anna Keller, Söhne: not started' || return 1
    curl -sS -b "$jar" -X POST -o /dev/null "$2/sign-out" || return 1
    curl -sS -b "$jar" "$2/" | grep -q 'name="password"'
}

build_go_client() {
    mkdir -p "$1/clients/go/client"
    (cd "$1/clients/go" && export GOWORK=off && go tool oapi-codegen -config oapi-codegen.yaml "$1/openapi.json" && go build -o "$1/go-client" .) || return 1
    echo "oapi-codegen: $(wc -l <"$1/clients/go/client/client.gen.go") lines"
}

build_typescript_clients() {
    cd "$1/clients" || return 1
    node_modules/.bin/openapi-typescript "$1/openapi.json" -o generated/openapi-typescript.ts >"$1/generated" 2>&1 &&
        OPENAPI_DOCUMENT="$1/openapi.json" node_modules/.bin/openapi-ts -f openapi-ts.config.mjs >>"$1/generated" 2>&1 &&
        node_modules/.bin/tsc -p tsconfig.json || { cat "$1/generated"; return 1; }
    cd "$OLDPWD" || return 1
}

run_clients() {
    export KONTOR_URL="$2" KONTOR_USER=admin@kontor.localhost KONTOR_PASSWORD="$client_password" KONTOR_API_KEY="$client_key"
    export KONTOR_BILL="$PWD/testdata/qr/files/png-100-b60-00.png"
    install_clients "$1" "$2" && "$1/example" && check_samples "$1" || return 1
    (cd "$1/program" && node --test --test-timeout=120000 test/*.test.mjs) || return 1
    "$1/go-client" && node "$1/clients/built/openapi-fetch.js" && node "$1/clients/built/hey-api.js"
}
