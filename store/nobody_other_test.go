//go:build !unix

package store_test

import "testing"

// runAsNobody is not called: there is no superuser here.
func runAsNobody(*testing.T) {}
