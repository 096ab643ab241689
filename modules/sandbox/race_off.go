//go:build !race

package sandbox

// detectorCost is that of a program without the race detector.
const detectorCost = 1
