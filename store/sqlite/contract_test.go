package sqlite_test

import (
	"testing"

	"kontor/store/engine/enginetest"
	"kontor/store/sqlite"
)

func TestEngine_KeepsTheContract(t *testing.T) {
	enginetest.Run(t, sqlite.Open, enginetest.InDirectory)
}
