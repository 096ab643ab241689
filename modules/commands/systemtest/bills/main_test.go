// Package bills_test sends hostile files to a server that reads bills, and kills the processes that read them.
package bills_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
