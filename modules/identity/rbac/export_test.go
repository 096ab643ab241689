package rbac

import (
	"slices"
	"testing"
)

// AsBeforeLaterGrants makes starts decide on the later grants again, as if no version had done it, until the test ends.
func AsBeforeLaterGrants(t *testing.T) {
	former := laterGrants
	laterGrants = slices.Clone(former)
	for i := range laterGrants {
		laterGrants[i].name += " of " + t.Name()
	}
	t.Cleanup(func() { laterGrants = former })
}
