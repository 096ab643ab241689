//go:build !race

package list_test

const raceDetector = false
