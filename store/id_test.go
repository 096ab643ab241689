package store_test

import (
	"slices"
	"testing"

	"kontor/store"
)

func TestNewID_Grows(t *testing.T) {
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = store.NewID()
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort by their making")
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 10_000 {
		t.Error("an id came twice")
	}
	if id := ids[0]; len(id) != 36 || id[14] != '7' {
		t.Errorf("%s is no UUID of version 7", id)
	}
}
