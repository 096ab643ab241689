package store

import (
	"context"

	"kontor/store/engine"
)

// CheckPrimary returns an error while this node refuses the database server that it reaches, because acknowledged commits are
// missing there.
func (db *DB) CheckPrimary(ctx context.Context) error {
	if s, ok := db.engine.(engine.Server); ok {
		return s.CheckPrimary(ctx)
	}
	return nil
}

// CheckDurability returns an error while the configuration of the database server lets a loss of power destroy acknowledged writes.
func (db *DB) CheckDurability(ctx context.Context) error {
	if s, ok := db.engine.(engine.Server); ok {
		return s.CheckDurability(ctx)
	}
	return nil
}

// CheckRole returns an error when the role with which this node signs in to a database server may do more than Kontor needs.
func (db *DB) CheckRole(ctx context.Context) error {
	if s, ok := db.engine.(engine.Server); ok {
		return s.CheckRole(ctx)
	}
	return nil
}
