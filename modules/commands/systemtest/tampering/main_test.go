// Package tampering_test changes the database behind the back of the program, which must report it.
package tampering_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
