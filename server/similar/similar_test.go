package similar_test

import (
	"strings"
	"testing"

	"kontor/server/similar"
)

func TestClosest_AcceptsFewChanges(t *testing.T) {
	known := []string{"serve", "settings", "backup", "restore"}
	for wrong, want := range map[string]string{
		"srve": "serve", "SERVE": "serve", "setings": "settings", "bakcup": "backup", "restored": "restore",
		"": "", "x": "", "srv": "", "unrelated": "", strings.Repeat("serve", 1000): "",
	} {
		if got := similar.Closest(wrong, known, strings.ToLower); got != want {
			t.Errorf("%q: got %q, want %q", wrong, got, want)
		}
	}
	if got := similar.Closest("serve", nil, strings.ToLower); got != "" {
		t.Errorf("got %q without known names", got)
	}
}
