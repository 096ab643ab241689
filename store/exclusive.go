package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kontor/store/engine"
)

// metaExclusive is the row of the table meta with the id of the node that runs the function of [DB.Exclusively].
const metaExclusive = "exclusive"

const (
	// claimPoll is how often a node looks whether it is its turn.
	claimPoll = 100 * time.Millisecond
	// claimPatience is how long a node without a lease keeps the others waiting. It exceeds the time until the others
	// list a new node.
	claimPatience = 3 * time.Second
)

// Exclusively runs f while no other node of a shared database runs a function in this way: for what a start writes. It waits for the
// turn until the context ends; f must not call it. If a node is killed, the next one follows after some seconds; f must be safe to run again.
func (db *DB) Exclusively(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if !db.Shared() {
		return f(ctx)
	}
	db.exclusive.Lock() // the row distinguishes nodes, not goroutines
	defer db.exclusive.Unlock()
	self := db.self()
	if err := db.awaitTurn(ctx, self); err != nil {
		return fmt.Errorf("wait for another node that is starting: %w", err)
	}
	defer func() {
		err = errors.Join(err, db.InTx(context.WithoutCancel(ctx), func(tx *Tx) error {
			_, err := tx.Exec(ctx, deleteClaim, metaExclusive, self)
			return err
		}))
	}()
	return f(ctx)
}

const deleteClaim = `DELETE FROM meta WHERE name = $1 AND value = $2`

// self returns the id of this node.
func (db *DB) self() string {
	nodes := db.Nodes()
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.Self }); i >= 0 {
		return nodes[i].ID
	}
	return ""
}

func (db *DB) awaitTurn(ctx context.Context, self string) error {
	poll := time.NewTicker(claimPoll)
	defer poll.Stop()
	missing, since := "", time.Time{} // a node that holds the turn without a lease
	for {
		var holder string
		err := db.InTx(ctx, func(tx *Tx) (err error) {
			holder, err = tx.takeTurn(ctx, self, missing != "" && time.Since(since) > claimPatience, missing)
			return err
		})
		if err != nil || holder == self {
			return err
		}
		switch live := slices.ContainsFunc(db.Nodes(), func(n Node) bool { return n.ID == holder }); {
		case live:
			missing = ""
		case missing != holder:
			missing, since = holder, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}

// takeTurn takes the turn if it is free, or if force is true and the node before still has it. It returns who has it.
func (tx *Tx) takeTurn(ctx context.Context, self string, force bool, before string) (holder string, err error) {
	err = tx.QueryRow(ctx, engine.SelectMeta, metaExclusive).Scan(&holder)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return "", err
	}
	if err == nil && !(force && holder == before) {
		return holder, nil
	}
	_, err = tx.Exec(ctx, engine.UpsertMeta, metaExclusive, self)
	return self, err
}
