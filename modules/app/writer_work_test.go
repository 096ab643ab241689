package app_test

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// inTransaction lists the expensive work that functions passed to InTx still do, by package and kind, with the reason.
// Every entry needs a reason: one more digest delays every waiting write by microseconds. Remove stale entries.
var inTransaction = map[string]string{
	" seal":                  "the answer to a request with an idempotency key, of the modules that do not use store.DB.Answer yet",
	" digest":                "records of several tables are changed in the transaction, by kit/recordtype alone",
	"auth digest":            "sessions are read in the transaction that ends or refreshes them",
	"auth template":          "the notification of a method of sign-in that was undone, which is rare",
	"auth token":             "the times of a token are those of its session, which the transaction decides",
	"chats digest":           "participants are read in the transaction that changes them",
	"customers digest":       "documents and entries of the history get their times in the transaction",
	"customers template":     "a decision renders its notification",
	"directory seal":         "the link that undoes a new address is sealed for each older one, in microseconds",
	"factors seal":           "the link that undoes a new factor is sealed for each address, in microseconds",
	"oidc seal":              "the link that undoes a linked account is sealed for each address, in microseconds",
	"factors digest":         "factors are read in the transaction that changes them, which is rare",
	"files digest":           "files are read in the transaction that deletes or opens them",
	"oidc digest":            "the session of a sign-in is opened in the transaction that uses up its code",
	"oidc template":          "the notification of an unlinked account, which is rare",
	"oidc token":             "the session of a sign-in is opened in the transaction that uses up its code",
	"personas digest":        "removing a link or a user is rare",
	"privacy digest":         "erasures are rare, and run in small transactions",
	"profile digest":         "pictures and preferences change rarely",
	"rbac digest":            "limits change rarely, and roles and grants are rarely deleted",
	"screening digest":       "lists change rarely, and a digest has the number of the load, which the transaction confirms",
	"serviceaccounts digest": "accounts and tokens change rarely",
	"tasks digest":           "deleting a task is rare",
	"webhooks digest":        "webhooks change rarely",
	"directory digest":       "users are read in the transaction that changes them",
	"directory template":     "the notification of a changed password",
	"directory token":        "registration creates the session and the user in one transaction",
}

// TestScenario_DoesExpensiveWorkOutsideTransactions fails when a module renders, encodes, encrypts or signs in a
// transaction, while all other writes wait. Prepare such work before the transaction, as records.Update does.
func TestScenario_DoesExpensiveWorkOutsideTransactions(t *testing.T) {
	s := newScenario(t)
	var mu sync.Mutex
	found := map[string]string{}
	s.server.DB.WatchWriter(func(work string) {
		place, stack := runningJob()
		mu.Lock()
		defer mu.Unlock()
		found[place+" "+work] = stack
	})
	s.run()
	mu.Lock()
	defer mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(found)) {
		if _, known := inTransaction[what]; !known {
			t.Errorf("%s is done in a transaction, at\n%s", what, found[what])
		}
	}
	for what := range inTransaction {
		if _, done := found[what]; !done {
			t.Errorf("%s is no longer done in a transaction: remove it from the list", what)
		}
	}
}

// runningJob returns the module whose job the writer runs, and the stack of the work.
func runningJob() (place, stack string) {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	var way []string
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, "kontor/modules/"); ok {
			way = append(way, name)
			if module, _, _ := strings.Cut(name, "."); module != "kit/records" && module != "kit/recordtype" { // it calls functions of other modules
				_, place, _ = strings.Cut(module, "/") // without its room
			}
		}
		if !more {
			return place, strings.Join(way, "\n")
		}
	}
}
