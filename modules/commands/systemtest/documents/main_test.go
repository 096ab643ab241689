// Package documents_test runs the commands of the documents, and compares the metrics with the rules and the dashboard in docs/monitoring.
package documents_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
