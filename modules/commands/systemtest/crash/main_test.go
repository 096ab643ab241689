// Package crash_test kills servers and commands, at random and at chosen system calls: no acknowledged change is lost, and no manual repair is needed.
package crash_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
