package change_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kontor/modules/kit/change"
)

func TestPosition_SortsByNumberAndComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) change.Position {
			return change.Position{Seq: rapid.Int64Range(0, 1<<60-1).Draw(t, name), Hash: rapid.Uint64Range(0, 1<<62-1).Draw(t, name+" hash")}
		}
		a, b := draw("a"), draw("b")
		for _, p := range []change.Position{a, b} {
			if back, ok := change.ParsePosition(p.ID()); !ok || back != p {
				t.Fatalf("%+v came back as %+v, %t", p, back, ok)
			}
		}
		if a.Seq != b.Seq && (a.Seq < b.Seq) != (a.ID() < b.ID()) {
			t.Fatalf("%d is %s, and %d is %s", a.Seq, a.ID(), b.Seq, b.ID())
		}
	})
}

func TestParsePosition_RejectsOtherTexts(t *testing.T) {
	good := change.Position{Seq: 42, Hash: math.MaxUint32}.ID()
	for _, text := range []string{"", "42", "0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10", "{" + good + "}", "urn:uuid:" + good,
		strings.ReplaceAll(good, "-", ""), good + "\n", "00000000-0000-0000-0000-000000000000"} {
		if p, ok := change.ParsePosition(text); ok {
			t.Errorf("%q is %+v", text, p)
		}
	}
}

func TestPositionOf_ReadsTheBeginningOfAHash(t *testing.T) {
	p, err := change.PositionOf(7, strings.Repeat("f", 64))
	if err != nil || p != (change.Position{Seq: 7, Hash: 1<<62 - 1}) {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, hash := range []string{"", "ff", "no hash at all!!"} {
		if _, err := change.PositionOf(7, hash); err == nil {
			t.Errorf("%q is a hash", hash)
		}
	}
	ids := []string{change.Position{Seq: 4095}.ID(), change.Position{Seq: 4096}.ID(), change.Position{Seq: 1 << 40}.ID()}
	if !slices.IsSorted(ids) {
		t.Errorf("%q are not sorted", ids)
	}
}
