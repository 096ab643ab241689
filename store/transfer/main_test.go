package transfer_test

import (
	"os"
	"testing"

	"kontor/store/testenv"
)

// Each copy has one side on PostgreSQL.
func TestMain(m *testing.M) { os.Exit(testenv.Main(m, testenv.Full)) }
