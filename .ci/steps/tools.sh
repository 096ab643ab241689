# shellcheck shell=bash
# Programs that the checks need beside Go. They are installed once, each version in its own directory below $XDG_CACHE_HOME or ~/.cache.

golangci_version=v2.15.0
oasdiff_version=v1.36.0
tools="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kontor-ci"

# Linters, tests and the built program share compiled packages if they agree on these.
export CGO_ENABLED=0
[[ " ${GOFLAGS:-} " == *' -trimpath '* ]] || export GOFLAGS="${GOFLAGS:-} -trimpath"

# Packages that the race detector leaves out, because they only compute: SQLite, whose memory is not the heap that it watches, and the
# decoding of pictures. Tests take a third of the time. A package that uses sync.Map must not be here: the linker keeps
# one copy of generic code, and a copy that is not watched hides what synchronizes the others.
not_watched=(
    modernc.org/sqlite/lib modernc.org/libc modernc.org/memory
    github.com/makiuchi-d/gozxing/... github.com/disintegration/imaging golang.org/x/image/...
)

# with_race_detector: changes these for the race detector, which needs cgo. With -trimpath a new clone has the compiled packages of the
# one before it.
with_race_detector() {
    export CGO_ENABLED=1 GOFLAGS="$GOFLAGS$(printf ' -gcflags=%s=-race=false' "${not_watched[@]}")"
}

# use_memory: has tests keep their files in memory where there is space and programs may run: a database of PostgreSQL has a thousand files,
# and creating and deleting them on a disk takes ten times the processor time. Compilers stay on the disk.
use_memory() {
    local free
    [[ $(findmnt -no FSTYPE,OPTIONS /dev/shm 2>/dev/null) =~ ^tmpfs && ! $(findmnt -no OPTIONS /dev/shm) =~ noexec ]] || return 0
    free=$(df --output=avail -k /dev/shm | tail -n 1)
    [[ $free -gt $((8 << 20)) && -w /dev/shm ]] || return 0
    export GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}}
    TMPDIR=$(mktemp -d -p /dev/shm kontor-ci-XXXX)
    export TMPDIR
    chmod 755 "$TMPDIR" # PostgreSQL runs as a user of its own
    temporary+=("$TMPDIR")
}

# tool NAME VERSION PACKAGE: installs a program of Go unless this version is there, and prints its path.
tool() {
    local dir="$tools/$1-$2"
    if [[ ! -x "$dir/$1" ]]; then
        echo "installing $1 $2" >&2
        GOBIN="$dir" GOFLAGS='' go install "$3@$2" >&2
    fi
    echo "$dir/$1"
}

# npm_packages NAME FOLDER: installs what the lock file of a folder names beside a copy of the folder's modules, in a directory of its
# own for each state of these files, and prints the path. The directory appears when it is complete: another lane, or a later run,
# never sees a part of it.
npm_packages() {
    local dir new
    if ! command -v npm >/dev/null || [[ $(node -p 'parseInt(process.versions.node)') -lt 20 ]]; then
        echo "reason: npm and Node.js 20 or newer are needed for the packages of $2" >&2
        return 1
    fi
    dir="$tools/npm-$1-$(find "$2" -maxdepth 1 \( -name 'package*.json' -o -name '*.mjs' \) -print0 | sort -z | xargs -0 cat | sha256sum | cut -c 1-12)"
    mkdir -p "$tools"
    (
        flock 9 # two lanes may want the same packages
        [[ ! -d "$dir" ]] || exit 0
        echo "installing the packages of $2" >&2
        new=$(mktemp -d -p "$tools")
        find "$2" -maxdepth 1 \( -name 'package*.json' -o -name '*.mjs' \) -exec cp {} "$new" \;
        npm ci --silent --no-fund --no-audit --ignore-scripts --prefix "$new" >&2 || exit 1
        chmod 755 "$new"
        mv -T "$new" "$dir"
    ) 9>"$tools/npm-$1.lock" || return 1
    echo "$dir"
}

as_root() {
    if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

# Installs the programs of modules/commands/systemtest/README.md.
step_install() {
    local missing=()
    command -v gcc >/dev/null || missing+=(gcc libc6-dev)
    command -v curl >/dev/null || missing+=(curl)
    command -v zsh >/dev/null || missing+=(zsh)
    command -v strace >/dev/null || missing+=(strace)
    command -v chromium-headless-shell >/dev/null || missing+=(chromium-headless-shell)
    command -v oathtool >/dev/null || missing+=(oathtool)
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
    command -v npm >/dev/null || missing+=(npm)
    command -v promtool >/dev/null || missing+=(prometheus)
    command -v nginx >/dev/null || missing+=(nginx-light)
    command -v haproxy >/dev/null || missing+=(haproxy)
    command -v clamd >/dev/null || missing+=(clamav-daemon)
    command -v systemd-analyze >/dev/null || missing+=(systemd)
    (cd .ci/pebble && go mod download) # for the tests of ACME
    (cd .ci/s3 && go mod download)     # for the tests of continuous backups
    if [[ ${#missing[@]} -eq 0 ]]; then
        echo "nothing is missing"
        return
    fi
    echo "installing ${missing[*]}"
    local log
    log=$(mktemp)
    if ! { as_root apt-get update -q &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 30 "$log"
        echo "reason: apt-get could not install ${missing[*]}"
        return 1
    fi
    rm -f "$log"
}
