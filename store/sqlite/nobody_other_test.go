//go:build !unix

package sqlite_test

import "testing"

// runAsNobody is not called on systems without a superuser.
func runAsNobody(*testing.T) {}
