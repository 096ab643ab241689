// Package demotest runs Kontor with the demo data for tests. It is not part of servertest, so that other tests do not compile package demo.
package demotest

import (
	"context"
	"testing"

	"kontor/modules/demo"
	"kontor/server/servertest"
	"kontor/store/clock"
)

// Start is servertest.Start with the demo data, and with the clock of the system: Clock is nil.
func Start(t testing.TB) *servertest.Server {
	t.Helper()
	shifted := &clock.Shifted{}
	s := servertest.StartShifted(t, shifted)
	manifest := &demo.Manifest{Admin: servertest.AdminEmail, Password: servertest.AdminPassword}
	if err := demo.Load(context.Background(), s.Modules, shifted, servertest.APIKey, manifest); err != nil {
		t.Fatal(err)
	}
	return s
}
