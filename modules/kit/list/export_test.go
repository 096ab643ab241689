package list

import "testing"

// SetWalks changes the bounds of walks until the test ends, so that few rows are enough to pass each of them.
func SetWalks(t testing.TB, matches, rows int64, pieces int, distinct int64) {
	before := walks
	t.Cleanup(func() { walks = before })
	walks.matches, walks.rows, walks.pieces, walks.distinct = matches, rows, pieces, distinct
}
