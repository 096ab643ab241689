# shellcheck shell=bash
# The linters of Go and JavaScript.

step_format() {
    local wrong
    wrong=$(gofmt -l .)
    if [[ -n $wrong ]]; then
        echo "$wrong"
        echo "reason: these files are not in gofmt's form; run: gofmt -w ."
        return 1
    fi
}

# Includes the checks of go vet and staticcheck.
step_golangci() {
    local bin
    bin=$(tool golangci-lint "$golangci_version" github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
    "$bin" run ./...
}

# Lints the console's JavaScript.
step_eslint() {
    local dir
    dir=$(npm_packages eslint web/lint)
    "$dir/node_modules/.bin/eslint" --config "$dir/eslint.config.mjs" --max-warnings 0 web/app web/docs web/test web/client/test web/lint
}
