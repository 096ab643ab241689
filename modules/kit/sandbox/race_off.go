//go:build !race

package sandbox

// raceFactor is 1 without the race detector.
const raceFactor = 1
