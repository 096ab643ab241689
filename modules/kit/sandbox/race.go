//go:build race

package sandbox

// raceFactor is the factor by which the race detector increases memory and time.
const raceFactor = 16
