// Package backups_test backs up servers, also continuously and under load, and restores them.
package backups_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
