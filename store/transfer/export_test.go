package transfer

import (
	"testing"
	"time"
)

// SetSessionWait sets how long copies wait for the sessions of other programs, until the test ends.
func SetSessionWait(t testing.TB, d time.Duration) {
	before := sessionWait
	sessionWait = d
	t.Cleanup(func() { sessionWait = before })
}
