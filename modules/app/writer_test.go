package app_test

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// inTransaction is the heavy work that closures of InTx still do, by package and kind, with the reason. An entry whose
// work is gone is taken out. A new entry needs a reason, too: one more digest costs every waiting write microseconds.
var inTransaction = map[string]string{
	" seal":              "the answer to a request with an idempotency key, of the modules that do not use store.DB.Answer yet",
	"auth digest":        "sessions are read in the transaction that ends or refreshes them",
	"auth token":         "the times of a token are those of its session, which the transaction decides",
	"chats digest":       "participants are read in the transaction that changes them",
	"customers digest":   "documents and entries of the history get their times in the transaction",
	"customers template": "a decision words its notice",
	"personas digest":    "removing a link or a user is rare",
	"profile digest":     "pictures and preferences change rarely",
	"rbac digest":        "limits change rarely, and roles and grants are rarely deleted",
	"tasks digest":       "deleting a task is rare",
	"users digest":       "accounts are read in the transaction that changes them",
	"users template":     "the notice of a changed password",
	"users token":        "registration opens its session in one transaction with the user",
}

// TestDay_LeavesTheWriterToWrite fails when somebody renders, encodes, encrypts or signs in a transaction, while all
// other writes wait: it belongs before it (style of the store: prepare outside, verify inside, see records.Update).
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
	for what := range inTransaction {
		if _, made := found[what]; !made {
			t.Errorf("%s is no longer made in a transaction: take it out of the list", what)
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
			if module, _, _ := strings.Cut(name, "."); module != "records" { // it runs the closures of the others
				place = module
			}
		} else if strings.HasSuffix(frame.Function, "(*writer).call") || !more {
			return place, strings.Join(way, "\n")
		}
		if !more {
			return place, strings.Join(way, "\n")
		}
	}
}
