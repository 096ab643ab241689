//go:build race

package list_test

// raceDetector makes each statement ten times slower: tests of many random cases try fewer.
const raceDetector = true
