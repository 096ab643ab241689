package modules_test

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// inTransaction is the heavy work that closures of InTx still do, by package and kind, with the reason.
var inTransaction = map[string]string{}

// TestDay_LeavesTheWriterToWrite fails when somebody renders, encodes, encrypts or signs in a transaction, while all
// other writes wait: it belongs before it (style of the store: prepare outside, verify inside, see records.Change).
func TestDay_LeavesTheWriterToWrite(t *testing.T) {
	d := newDay(t)
	var mu sync.Mutex
	found := map[string]string{}
	d.s.DB.WatchWriter(func(work string) {
		place, stack := closureOf()
		mu.Lock()
		defer mu.Unlock()
		found[place+" "+work] = stack
	})
	d.passes()
	mu.Lock()
	defer mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(found)) {
		if _, known := inTransaction[what]; !known {
			t.Errorf("%s is made in a transaction, at\n%s", what, found[what])
		}
	}
}

// closureOf names the package whose closure is running, and the way to the work.
func closureOf() (place, stack string) {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	var way []string
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, "kontor/modules/"); ok {
			way = append(way, name)
			place, _, _ = strings.Cut(name, ".")
		} else if strings.HasSuffix(frame.Function, "(*writer).call") || !more {
			return place, strings.Join(way, "\n")
		}
		if !more {
			return place, strings.Join(way, "\n")
		}
	}
}
