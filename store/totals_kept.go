package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/store/datadir"
	"kontor/store/engine"
)

// TotalsName is the file in the data directory that keeps large totals while no process runs. Without it, and when the database has
// changed since, they are counted again.
const TotalsName = "kontor.totals"

const (
	// keptFrom is the number of counted rows from which a total is kept: fewer are counted in some milliseconds.
	keptFrom = 100_000
	// keptLimit bounds the kept totals.
	keptLimit = 200
	// settleTime bounds how long a stop brings totals up to date before it keeps them.
	settleTime = time.Second
	// recountDelay is the pause before totals are counted again in the background, after a process that did not stop in order.
	recountDelay = 2 * time.Second

	totalsPurpose = "kept totals"
	digestBytes   = 32
)

// keptTotals is the content of the file. A keyed digest follows it.
type keptTotals struct {
	Position string      `json:"position"` // the state of the database for which they are right; empty for none
	Totals   []keptTotal `json:"totals"`
}

// keptTotal is a total with its statement. The values of arguments are not kept.
type keptTotal struct {
	Key       []byte              `json:"key"`
	SQL       string              `json:"sql"`
	Each      string              `json:"each"`
	Args      int                 `json:"args"` // how many
	Rows      []engine.KeyedTable `json:"rows"`
	Tables    []string            `json:"tables"`
	MaxGroups int                 `json:"max_groups"`
	Different bool                `json:"different,omitzero"` // the only group is the number of different values
	Groups    []keptGroup         `json:"groups"`
}

type keptGroup struct {
	Text   *string `json:"text,omitzero"`
	Number *int64  `json:"number,omitzero"` // without both the value is NULL
	Rows   int64   `json:"rows"`
}

// counting returns the statement without its arguments.
func (k *keptTotal) counting() *Counting {
	return &Counting{SQL: k.SQL, Each: k.Each, Args: make([]any, k.Args), Rows: k.Rows, Tables: k.Tables, MaxGroups: k.MaxGroups}
}

// takeUpTotals takes over the totals that the last process has kept. If it did not stop in order, those without arguments are counted
// again in the background. It must be called before the first write.
func (db *DB) takeUpTotals(ctx context.Context) {
	keeper, ok := db.engine.(engine.Keeper)
	if !ok || db.dir == nil {
		return
	}
	kept, err := db.readTotals()
	if err == nil && kept != nil {
		if kept.Position == keeper.Position() {
			err = db.restoreTotals(ctx, keeper, kept)
		} else {
			db.recount(kept)
		}
		if err == nil && kept.Position != "" { // a later process must not take them for those of its own state
			err = db.writeTotals(&keptTotals{Totals: kept.Totals})
		}
	}
	if err != nil {
		db.log.Warn("kept totals cannot be used; they are counted again", "file", db.dir.File(TotalsName), "cause", err)
		if err := db.dir.Remove(TotalsName); err != nil {
			db.log.Warn("the kept totals cannot be removed", "cause", err)
		}
	}
}

func (db *DB) restoreTotals(ctx context.Context, keeper engine.Keeper, kept *keptTotals) error {
	for i := range kept.Totals {
		k := &kept.Totals[i]
		c := k.counting()
		if err := keeper.Follow(ctx, c); err != nil {
			return err
		}
		version, err := db.versionOf(ctx, c, true)
		if err != nil {
			return err
		}
		e := db.totals.entry(string(k.Key))
		e.known, e.at, e.version, e.groups = true, keeper.Committed(), version, restored(k.Groups)
		e.counting, e.different = c, k.Different
	}
	return nil
}

// recount counts totals without arguments in the background.
func (db *DB) recount(kept *keptTotals) {
	ctx, stop := context.WithCancel(context.Background())
	db.recounting.stop = stop
	db.recounting.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(recountDelay):
		}
		for i := range kept.Totals {
			if k := &kept.Totals[i]; k.Args == 0 && ctx.Err() == nil {
				if _, err := db.countAgain(ctx, string(k.Key), k.counting(), k.Different); err != nil && ctx.Err() == nil && !errors.Is(err, ErrTooManyGroups) {
					db.log.Warn("a total was not counted again", "statement", k.SQL, "cause", err)
				}
			}
		}
	})
}

// settleTotals ends the counting in the background and brings large totals up to date, for as long as a stop may take.
func (db *DB) settleTotals() {
	if db.recounting.stop != nil {
		db.recounting.stop()
		db.recounting.Wait()
	}
	if _, ok := db.engine.(engine.Keeper); !ok || db.dir == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for key, large := range db.totals.large() {
		if c := large.counting; len(c.Args) == 0 || c.Args[0] != nil { // else it is from an earlier process, and its arguments are not known
			if _, err := db.countAgain(ctx, key, c, large.different); err != nil {
				return
			}
		}
	}
}

// countAgain brings a total up to date.
func (db *DB) countAgain(ctx context.Context, key string, c *Counting, different bool) ([]Group, error) {
	count := db.count
	if different {
		count = db.countValues
	}
	return db.counted(ctx, db.totals.entry(key), c, count)
}

// keepTotals writes the large totals that are right for the final state of the database. It must be called after the engine was closed.
func (db *DB) keepTotals(ctx context.Context) error {
	keeper, ok := db.engine.(engine.Keeper)
	if !ok || db.dir == nil {
		return nil
	}
	kept := &keptTotals{Position: keeper.Position()}
	for key, large := range db.totals.large() {
		c := large.counting
		version, err := db.versionOf(ctx, c, true)
		if err != nil {
			return err
		}
		e := db.totals.entry(key)
		e.mu.Lock()
		right := e.known && e.version == version && keeper.Unchanged(c, e.at)
		groups, storable := storedGroups(e.groups)
		e.mu.Unlock()
		if right && storable && len(kept.Totals) < keptLimit {
			kept.Totals = append(kept.Totals, keptTotal{
				Key: []byte(key), SQL: c.SQL, Each: c.Each, Args: len(c.Args), Rows: c.Rows, Tables: c.Tables, MaxGroups: c.MaxGroups, Different: large.different, Groups: groups,
			})
		}
	}
	if len(kept.Totals) == 0 {
		return nil
	}
	return db.writeTotals(kept)
}

func (db *DB) writeTotals(kept *keptTotals) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return datadir.Write(db.dir.File(TotalsName), append(data, db.Keyed(totalsPurpose, data)...))
}

// readTotals reads the file. It returns nil without one.
func (db *DB) readTotals() (*keptTotals, error) {
	data, err := os.ReadFile(db.dir.File(TotalsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	end := len(data) - digestBytes
	if end < 0 || !bytes.Equal(data[end:], db.Keyed(totalsPurpose, data[:end])) {
		return nil, errors.New("it was not written with the present key")
	}
	kept := &keptTotals{}
	if err := json.Unmarshal(data[:end], kept); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	return kept, nil
}

// largeTotal is what is needed to count a total again.
type largeTotal struct {
	counting  *Counting
	different bool
}

// large returns the totals of many rows or values by their keys.
func (t *totals) large() map[string]largeTotal {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[string]largeTotal{}
	for key, e := range t.entries {
		e.mu.Lock()
		if e.known && e.counting != nil {
			found[key] = largeTotal{e.counting, e.different}
		}
		e.mu.Unlock()
	}
	return found
}

// countedRows returns the number of rows in all groups.
func countedRows(groups []Group) (n int64) {
	for _, g := range groups {
		n += g.Rows
	}
	return n
}

// storedGroups returns false for values that the file cannot hold.
func storedGroups(groups []Group) ([]keptGroup, bool) {
	stored := make([]keptGroup, len(groups))
	for i, g := range groups {
		stored[i].Rows = g.Rows
		switch value := g.Value.(type) {
		case nil:
		case string:
			stored[i].Text = &value
		case int64:
			stored[i].Number = &value
		default:
			return nil, false
		}
	}
	return stored, true
}

func restored(stored []keptGroup) []Group {
	groups := make([]Group, len(stored))
	for i, g := range stored {
		groups[i].Rows = g.Rows
		switch {
		case g.Text != nil:
			groups[i].Value = *g.Text
		case g.Number != nil:
			groups[i].Value = *g.Number
		}
	}
	return groups
}
