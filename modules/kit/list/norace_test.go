//go:build !race

package list_test

const defaultHistories = 300
