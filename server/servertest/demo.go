package servertest

import (
	"context"
	"sync/atomic"
	"testing"

	"kontor/modules/demo"
	"kontor/server/settings"
	"kontor/store/clock"
	"kontor/store/storetest"
)

// StartDemo is Start with the demo data, and with the clock of the system: Clock is nil.
func StartDemo(t testing.TB) *Server {
	t.Helper()
	shifted := &clock.Shifted{}
	o := storetest.Options(t)
	o.Clock = shifted
	s := startOn(t, storetest.OpenAgain(t, o), nil, new(atomic.Int64), []Option{func(s *settings.Settings) { s.Data.Dir = t.TempDir() }})
	manifest := &demo.Manifest{Admin: AdminEmail, Password: AdminPassword}
	if err := demo.Load(context.Background(), s.Modules, shifted, APIKey, manifest); err != nil {
		t.Fatal(err)
	}
	return s
}
