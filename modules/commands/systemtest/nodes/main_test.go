// Package nodes_test runs several nodes on one PostgreSQL database, and kills, suspends and separates them.
package nodes_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.MainWithRace(m) }
