// Package continuous copies a database, while it is served, to a directory or an S3 bucket: at most about a second behind, and
// encrypted before it leaves the machine. A restore can choose any time that was shipped.
//
// Each incarnation of a database (see sqlite.Lineage) has a line of parts, numbered without a gap. A part is a backup of the whole
// database, or what has changed since the part before. A whole one begins a chain:
//
//	x2kq7n4mbd3ovw5a/20270131T080000Z-k3x9q2fa/0000000000-1801382400000-412-0-whole.age
//	x2kq7n4mbd3ovw5a/20270131T080000Z-k3x9q2fa/0000000001-1801382403127-415-3127.age
//	x2kq7n4mbd3ovw5a/line.age
//
// The names say the incarnation, the chain, the number, the time of the state in milliseconds since 1970, the number of its newest
// commit, and for how many milliseconds the incarnation was served. The time may be wrong, because clocks jump; the order of states
// is that of their commits. Each part also contains these facts, and a restore rejects a part whose name says something else.
// line.age says which server writes the line, and which part is the newest.
//
// A part is a backup as package backup writes it, encrypted as https://age-encryption.org/v1 describes, with a passphrase that is
// derived from the master key. It never contains the master key: without that key nothing can be restored.
//
// Every start of the server begins a new chain, and so do a new day and a new master key. Earlier versions wrote chains without
// lines, see [Line.Old].
package continuous

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kontor/store/clock"
	"kontor/store/sqlite"
)

// A Target keeps objects. Its methods may be called from any goroutine.
type Target interface {
	// Put stores an object. It must not be visible before it is complete and durable.
	Put(ctx context.Context, name string, size int64, in io.ReadSeeker) error
	// List returns all objects whose names this package may have made, in no particular order.
	List(ctx context.Context) ([]Object, error)
	// Get returns the content of an object. A missing one is fs.ErrNotExist, from Get or from the first read.
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

// part is an object of a chain, as its name describes it.
type part struct {
	line, chain string // line is "" for a chain of an earlier version
	number      int64  // in its line; of an earlier version, in its chain
	at          clock.Time
	commits     int64
	elapsed     time.Duration
	whole       bool
	size        int64
}

const (
	suffix      = ".age"
	wholeSuffix = "-whole"
	lineFile    = "line" + suffix
	chainTime   = "20060102T150405Z"
	chainID     = 8  // letters after the time in the name of a chain
	numberWidth = 10 // digits of the number of a part
)

func (p part) isOld() bool { return p.line == "" }

func (p part) name() string {
	if p.isOld() {
		return fmt.Sprintf("%s/%0*d-%d%s", p.chain, numberWidth, p.number, int64(p.at), suffix)
	}
	end := suffix
	if p.whole {
		end = wholeSuffix + suffix
	}
	return fmt.Sprintf("%s/%s/%0*d-%d-%d-%d%s", p.line, p.chain, numberWidth, p.number, int64(p.at), p.commits, p.elapsed.Milliseconds(), end)
}

var (
	partName = regexp.MustCompile(`^(?:([a-z2-7]{16})/)?(\d{8}T\d{6}Z-[a-z0-9]+)/(\d{10})-(\d+)(?:-(\d+)-(\d+)(-whole)?)?\.age$`)
)

// parsePart returns the part that an object holds. ok is false for an object that no Shipper has named.
func parsePart(o Object) (p part, ok bool) {
	m := partName.FindStringSubmatch(o.Name)
	if m == nil {
		return p, false
	}
	var numbers [4]int64
	for i, text := range m[3:7] {
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return p, false
		}
		numbers[i] = n
	}
	p = part{
		line: m[1], chain: m[2], number: numbers[0], at: clock.Time(numbers[1]), commits: numbers[2],
		elapsed: time.Duration(numbers[3]) * time.Millisecond, whole: m[7] != "", size: o.Size,
	}
	if p.isOld() {
		p.whole = p.number == 0
	}
	return p, p.name() == o.Name
}

// parseLine returns the incarnation whose line.age an object is.
func parseLine(o Object) (incarnation string, ok bool) {
	incarnation, ok = strings.CutSuffix(o.Name, "/"+lineFile)
	return incarnation, ok && sqlite.IsIncarnation(incarnation)
}
