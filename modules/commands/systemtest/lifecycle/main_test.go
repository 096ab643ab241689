// Package lifecycle_test starts and stops servers, first starts and failing ones included.
package lifecycle_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
