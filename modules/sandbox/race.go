//go:build race

package sandbox

// detectorCost is how many times more memory and time the race detector takes.
const detectorCost = 16
