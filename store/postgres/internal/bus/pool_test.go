package bus_test

import (
	"strings"
	"testing"

	"kontor/store/postgres/postgrestest"
)

func TestPool_InTransactionModeIsRefused(t *testing.T) {
	address := postgrestest.NewPool(t, postgrestest.URL(t), true)
	_, err := open(t, address, options{})
	if err == nil || !strings.Contains(err.Error(), "transaction mode") || !strings.Contains(err.Error(), "use the address of PostgreSQL itself") {
		t.Errorf("got %v, want a sentence that says what to do", err)
	}
}

func TestPool_InSessionModeIsAccepted(t *testing.T) {
	direct := postgrestest.URL(t)
	a := start(t, direct, options{listen: postgrestest.NewPool(t, direct, false)})
	b := start(t, direct, options{})
	<-b.strict("through the pool")
	if !a.has("through the pool") {
		t.Error("the key has not arrived through the pool")
	}
}
