package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestIn_RoundsUpToAPowerOfTwo(t *testing.T) {
	for _, c := range []struct {
		first, n int
		want     string
	}{
		{1, 0, "$1"},
		{1, 1, "$1"},
		{3, 2, "$3, $4"},
		{2, 3, "$2, $3, $4, $5"},
		{8, 4, "$8, $9, $10, $11"},
		{98, 4, "$98, $99, $100, $101"},
		{997, 2, "$997, $998"},
		{998, 2, "$998, $999"},
		{999, 2, "$999, $1000"},
	} {
		if got := store.In(c.first, c.n); got != c.want {
			t.Errorf("In(%d, %d) = %q, want %q", c.first, c.n, got, c.want)
		}
	}
	sizes := []int{1000, 2000}
	for n := range 20 {
		sizes = append(sizes, n, 1<<min(n, 11)-1, 1<<min(n, 11), 1<<min(n, 11)+1)
	}
	for _, n := range sizes {
		for _, first := range []int{1, 2, 9, 10, 99, 100, 500} {
			var want []string
			for i := range strings.Count(store.In(first, n), "$") {
				want = append(want, fmt.Sprintf("$%d", first+i))
			}
			if got := store.In(first, n); got != strings.Join(want, ", ") || len(want) < n || len(want)&(len(want)-1) != 0 {
				t.Fatalf("In(%d, %d) = %q", first, n, got)
			}
		}
	}
}

func TestIn_MatchesExactlyTheValues(t *testing.T) {
	db := storetest.Open(t)
	for n := range 6 {
		ids := []string{"a", "b", "c", "d", "e"}[:n]
		text := "SELECT value FROM (SELECT 'a' AS value UNION ALL SELECT 'c' UNION ALL SELECT 'x') AS v WHERE $1 = 7 AND value IN (" +
			store.In(2, n) + ") ORDER BY value"
		rows, err := db.Query(t.Context(), text, store.AppendIn([]any{7}, ids)...)
		if err != nil {
			t.Fatalf("%d values: %v", n, err)
		}
		var got []string
		for rows.Next() {
			var value string
			if err := rows.Scan(&value); err != nil {
				t.Fatal(err)
			}
			got = append(got, value)
		}
		rows.Close()
		var want []string
		for _, id := range ids {
			if id == "a" || id == "c" {
				want = append(want, id)
			}
		}
		if err := rows.Err(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d values: %v, %v, want %v", n, got, err, want)
		}
	}
}

func TestIn_AllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { store.In(2, 64) }); n != 0 {
		t.Errorf("%v allocations for a list of 64", n)
	}
}
