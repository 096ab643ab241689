# shellcheck shell=bash
# The built program and the archives of a release.

# step_build builds, once for all steps, the program, the program with the race detector, and three commands of .ci.
step_build() {
    go build -ldflags=-w -o "$KONTOR_CI_WORK/kontor" .
    (with_race_detector && go build -race -ldflags=-w -o "$KONTOR_CI_WORK/kontor-race" .)
    go build -o "$KONTOR_CI_WORK/concurrent" .ci/concurrent.go
    go build -o "$KONTOR_CI_WORK/report" .ci/report.go
    go build -o "$KONTOR_CI_WORK/with-postgres" .ci/with_postgres.go
}

# built NAME: prints the path of one of these, and builds them unless the step build has run.
built() {
    [[ -x "$KONTOR_CI_WORK/with-postgres" ]] || step_build >&2 || return 1
    echo "$KONTOR_CI_WORK/$1"
}

# The largest executable of a release, in bytes: a guard against accidents, see docs/adr/0047-the-size-of-the-executable-is-no-goal.md.
max_executable=64000000

# Builds one archive of a release twice and compares the bytes. The second time the source has another path. The compiler gives equal
# results for equal sources; it uses its cache.
step_release() {
    local work size
    work=$(mktemp -d)
    temporary+=("$work")
    go test -C .ci/release -vet=off .
    go build -C .ci/release -o "$work/release" .
    "$work/release" -source . -out "$work/first" -version 0.0.0-test -targets linux/amd64 >/dev/null
    copy_source "$work/source"
    "$work/release" -source "$work/source" -out "$work/second" -version 0.0.0-test -targets linux/amd64 >/dev/null
    if ! diff -r "$work/first" "$work/second"; then
        echo "reason: two builds of the same source differ"
        return 1
    fi
    (cd "$work/first" && sha256sum --quiet -c SHA256SUMS && tar -xzf kontor_0.0.0-test_linux_amd64.tar.gz)
    "$work/first/kontor_0.0.0-test_linux_amd64/kontor" version | grep -q '^kontor 0\.0\.0-test '
    verify_unit "$work/first/kontor_0.0.0-test_linux_amd64" || return 1
    size=$(stat -c %s "$work/first/kontor_0.0.0-test_linux_amd64/kontor")
    echo "the executable has $size bytes"
    expect_size "$work/first/kontor_0.0.0-test_linux_amd64/README.md" "$size" || return 1
    if [[ $size -gt $max_executable ]]; then
        echo "reason: the executable is larger than $max_executable bytes"
        return 1
    fi
}

# verify_unit DIR: checks the systemd unit of an unpacked archive, with the archive's program.
verify_unit() {
    local findings
    sed "s|/usr/local/bin/kontor|$1/kontor|" "$1/docs/kontor.service" >"$1/kontor.service"
    findings=$(systemd-analyze verify "$1/kontor.service" 2>&1) && [[ -z $findings ]] || {
        echo "reason: systemd-analyze finds fault with docs/kontor.service: $findings"
        return 1
    }
}

# expect_size README BYTES: compares the size of the program that a README names with its real size.
expect_size() {
    local named difference
    named=$(grep -o 'one static file of about [0-9]* MB' "$1" | grep -o '[0-9]*')
    difference=$((named - $2 / 1000000))
    if [[ ${difference#-} -gt 3 ]]; then
        echo "reason: the README says that the program has about $named MB, and it has $2 bytes"
        return 1
    fi
}

# copy_source DIR: copies the files of the project as they are, with the name of its commit.
copy_source() {
    git clone -q --shared --no-checkout . "$1" # the program names its commit
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [[ ! -e $file ]] || printf '%s\0' "$file"
    done | xargs -0 cp --parents -t "$1"
    git -C "$1" reset -q
}

# free_port prints a port on which no program listens. It is below the ports of tests (testenv.FreeAddress) and of outgoing
# connections, which could take it before the program.
free_port() {
    local port
    while :; do
        port=$((RANDOM % 5000 + 10000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# status PORT PATH: prints the status line of the answer, or nothing.
status() {
    (
        exec 3<>"/dev/tcp/127.0.0.1/$1"
        printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$2" "$1" >&3
        head -n 1 <&3
    ) 2>/dev/null || true
}

# wait_ready PORT PID [PATH]: waits until a server answers 200, and returns 1 if it has ended, or hangs for five minutes.
wait_ready() {
    for _ in $(seq 3000); do
        [[ $(status "$1" "${3:-/readyz}") != *' 200 '* ]] || return 0
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
