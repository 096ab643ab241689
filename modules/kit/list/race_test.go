//go:build race

package list_test

// defaultHistories is smaller with the race detector, which makes each ten times slower.
const defaultHistories = 100
