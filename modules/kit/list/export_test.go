package list

import "testing"

// SetWalks changes the bounds of walks until the test ends, so that few rows are enough to pass each of them.
func SetWalks(t testing.TB, collected, matches, rows, distinct, round int64) {
	before := walks
	t.Cleanup(func() { walks = before })
	walks.collected, walks.matches, walks.rows, walks.distinct, walks.round = collected, matches, rows, distinct, round
}
