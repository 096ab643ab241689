package postgres_test

import (
	"testing"

	"kontor/store/engine"
	"kontor/store/engine/enginetest"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
)

func TestEngine_KeepsTheContract(t *testing.T) { enginetest.Run(t, postgres.Open, onServer) }

// onServer places a database on the server of the tests.
func onServer(t *testing.T) func(*engine.Config) {
	url := postgrestest.URL(t)
	return func(c *engine.Config) { c.URL = url }
}
