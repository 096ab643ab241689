// Package certificates_test serves HTTPS with certificates from files and from a certificate authority (ACME).
package certificates_test

import (
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m) }
