// Package certificates keeps the certificates of the server in the database, with the account at the certificate authority and the
// answers to its challenges. So every node of a shared database serves the same certificates, and answers the challenges of an
// order that another node has placed.
//
// The values are sealed and bound to their names. A server whose database belongs to one process keeps them in files instead.
//
// The module owns the table certificates. It publishes no views.
package certificates

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/crypto/acme/autocert"

	"kontor/modules/kit/personal"
	"kontor/store"
)

const (
	table  = "certificates"
	column = "content_sealed"
)

const (
	selectContent = `SELECT content_sealed FROM certificates WHERE name = $1`

	upsertContent = `
	INSERT INTO certificates (name, content_sealed, modified_at) VALUES ($1, $2, $3)
	ON CONFLICT (name) DO UPDATE SET content_sealed = excluded.content_sealed, modified_at = excluded.modified_at`

	deleteContent = `DELETE FROM certificates WHERE name = $1`
)

// Cache keeps what a client of a certificate authority must keep. It implements autocert.Cache. Create one with [New].
type Cache struct {
	personal.Nothing
	db  *store.DB
	log *slog.Logger
}

// New returns the cache of a database.
func New(db *store.DB, log *slog.Logger) *Cache {
	db.RegisterSealed(store.SealedColumn{
		Table: table, Column: column,
		Select: `SELECT name, name, content_sealed FROM certificates WHERE content_sealed NOT LIKE $1 AND name > $2 ORDER BY name LIMIT $3`,
		Update: `UPDATE certificates SET content_sealed = $3 WHERE name = $1 AND content_sealed = $2`,
	})
	return &Cache{db: db, log: log}
}

// Get returns an entry, or autocert.ErrCacheMiss. An entry that cannot be decrypted counts as missing: another certificate is
// obtained then.
func (c *Cache) Get(ctx context.Context, name string) ([]byte, error) {
	var sealed string
	err := c.db.QueryRow(ctx, selectContent, name).Scan(&sealed)
	if errors.Is(err, store.ErrNotFound) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	plain, err := c.db.Unseal(table, column, name, sealed)
	if err != nil {
		c.log.Warn("an entry of the certificates cannot be decrypted and is replaced", "name", name)
		return nil, autocert.ErrCacheMiss
	}
	return plain, nil
}

// Put stores an entry durably.
func (c *Cache) Put(ctx context.Context, name string, plain []byte) error {
	sealed, err := c.db.Seal(table, column, name, plain)
	if err != nil {
		return err
	}
	return c.db.InTx(ctx, func(tx *store.Tx) error {
		newest, err := tx.Reseal(table, column, name, sealed)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, upsertContent, name, newest, tx.Now())
		return err
	})
}

// Delete deletes an entry. A missing one is no error.
func (c *Cache) Delete(ctx context.Context, name string) error {
	return c.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, deleteContent, name)
		return err
	})
}

// PersonalData lists the tables of the module.
func (c *Cache) PersonalData() []personal.Table {
	return []personal.Table{{Name: table, Why: "It holds the keys and certificates of the server, sealed."}}
}
