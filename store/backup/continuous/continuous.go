// Package continuous copies a database, while it is served, to a directory or an S3 bucket: at most about a second behind, and
// encrypted before it leaves the machine. A restore can choose any time that was shipped.
//
// A chain is a backup of the whole database and the increments after it, each an object of its own:
//
//	20270131T080000Z-k3x9q2fa/0000000000-1801382400000.age   the whole database
//	20270131T080000Z-k3x9q2fa/0000000001-1801382403127.age   the pages that have changed since, and so on
//
// The first number counts the objects of the chain, the second is the time of the state in milliseconds since 1970. An object is
// a backup as package backup writes it, encrypted as https://age-encryption.org/v1 describes, with a passphrase that is derived
// from the master key. It never contains the master key: without that key nothing can be restored.
//
// Every start of the server begins a new chain, and so do a new day and a new master key.
package continuous

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"kontor/store/clock"
)

// A Target keeps objects. Its methods may be called from any goroutine.
type Target interface {
	// Put stores an object. It must not be visible before it is complete and durable.
	Put(ctx context.Context, name string, size int64, in io.ReadSeeker) error
	// List returns all objects whose names this package may have made, in no particular order.
	List(ctx context.Context) ([]Object, error)
	// Get returns the content of an object.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete deletes an object. A missing one is no error.
	Delete(ctx context.Context, name string) error
	// String names the target in messages, without secrets.
	String() string
}

// Object is an object of a target.
type Object struct {
	Name string
	Size int64
}

// part is an object of a chain.
type part struct {
	chain  string
	number int64
	at     clock.Time
	size   int64
}

const (
	suffix      = ".age"
	chainTime   = "20060102T150405Z"
	chainID     = 8  // letters after the time in the name of a chain
	numberWidth = 10 // digits of the number of a part
)

func (p part) name() string {
	return fmt.Sprintf("%s/%0*d-%d%s", p.chain, numberWidth, p.number, int64(p.at), suffix)
}

// parsePart returns the part that an object holds. ok is false for an object that no Shipper has named.
func parsePart(o Object) (p part, ok bool) {
	chain, file, found := strings.Cut(o.Name, "/")
	file, isOurs := strings.CutSuffix(file, suffix)
	number, at, isNumbered := strings.Cut(file, "-")
	if begun, _, dated := strings.Cut(chain, "-"); !found || !isOurs || !isNumbered || !dated || len(number) != numberWidth {
		return p, false
	} else if _, err := time.Parse(chainTime, begun); err != nil {
		return p, false
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return p, false
	}
	ms, err := strconv.ParseUint(at, 10, 63)
	if err != nil {
		return p, false
	}
	p = part{chain: chain, number: int64(n), at: clock.Time(ms), size: o.Size}
	return p, p.name() == o.Name
}

// chain is a whole backup and the increments after it, without gaps.
type chain []part

func (c chain) begin() clock.Time { return c[0].at }
func (c chain) end() clock.Time   { return c[len(c)-1].at }

// chains returns the chains of a target, the oldest first, and the parts that belong to none: what follows a gap, and what is
// left of a chain that was being deleted.
func chains(ctx context.Context, t Target) (all []chain, rest []part, err error) {
	objects, err := t.List(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", t, err)
	}
	parts := map[string][]part{}
	for _, o := range objects {
		if p, ok := parsePart(o); ok {
			parts[p.chain] = append(parts[p.chain], p)
		}
	}
	for _, found := range parts {
		found = inOrder(found)
		n := 0
		for n < len(found) && found[n].number == int64(n) {
			n++
		}
		if n > 0 {
			all = append(all, found[:n])
		}
		rest = append(rest, found[n:]...)
	}
	// By the first state, not by the name, which has only seconds: a server that starts twice in one second begins two chains.
	sort.Slice(all, func(i, j int) bool { return all[i].begin() < all[j].begin() })
	return all, rest, nil
}

// inOrder returns the parts of a chain by their numbers. Of two with one number, the earlier one was stored although the target
// reported a failure: the later one, which was stored instead, holds its pages, too.
func inOrder(parts []part) []part {
	sort.Slice(parts, func(i, j int) bool {
		return cmp.Or(cmp.Compare(parts[i].number, parts[j].number), cmp.Compare(parts[j].at, parts[i].at)) < 0
	})
	return slices.CompactFunc(parts, func(a, b part) bool { return a.number == b.number })
}
