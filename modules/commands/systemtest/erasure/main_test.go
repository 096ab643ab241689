// Package erasure_test erases people, and searches the files of the server for what remains.
package erasure_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
