// Package hostile_test attacks servers: forged requests, stolen tokens, floods.
package hostile_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.MainWithRace(m) }
