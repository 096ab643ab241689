//go:build !unix

package sqlite_test

import "testing"

// runAsNobody is not called: there is no superuser here.
func runAsNobody(*testing.T) {}
