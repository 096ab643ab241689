package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"kontor/modules/identity/directory"
	"kontor/server/access"
	"kontor/store"
)

// defaultAdmin is the e-mail address of the first administrator where KONTOR_ADMIN_EMAIL is not set.
const defaultAdmin = "admin@kontor.localhost"

// FirstAdmin returns the e-mail address of the first administrator for the value of KONTOR_ADMIN_EMAIL.
func FirstAdmin(email string) string {
	if email == "" {
		return defaultAdmin
	}
	return email
}

// firstKey is the name of the API key that the first start creates.
const firstKey = "first start"

// FirstBoot is what the first start created. It does not repeat secrets from the environment.
type FirstBoot struct {
	AdminEmail    string
	AdminPassword string // random; empty when the environment sets it
	APIKey        string // random; empty when the environment sets it
}

// Boot creates the first administrator and the first API key in an empty database, in one transaction, and returns them.
// Later calls return the same until [Modules.Shown] is called, so that no secret is lost when the first start is
// interrupted before it prints them. For any other database, Boot does nothing and returns nil. Call it, and show the result, within
// [store.DB.Exclusively], so that only one node of a shared database shows it.
func (m *Modules) Boot(ctx context.Context) (*FirstBoot, error) {
	boot, err := m.unshown(ctx)
	if boot != nil || err != nil {
		return boot, err
	}
	if exists, err := m.Users.Any(ctx, m.DB); err != nil || exists {
		return nil, err
	}
	secrets := m.Settings.Secrets
	boot = &FirstBoot{AdminEmail: FirstAdmin(secrets.AdminEmail)}
	password := string(secrets.AdminPassword)
	if password == "" {
		boot.AdminPassword = rand.Text()
		password = boot.AdminPassword
	}
	admin, err := m.Users.Prepare(ctx, directory.NewUser{Value: boot.AdminEmail, Password: password, Roles: []string{access.Administrator}})
	if err != nil {
		return nil, fmt.Errorf("first administrator: %w", err)
	}
	err = m.DB.InTx(ctx, func(tx *store.Tx) error {
		if exists, err := m.Users.Any(ctx, tx); err != nil {
			return err
		} else if exists {
			return errSetUp
		}
		user, err := m.Users.Store(ctx, tx, admin)
		if err == nil && boot.AdminPassword != "" {
			err = m.Auth.MarkPrinted(ctx, tx, user.ID)
		}
		if err != nil {
			return fmt.Errorf("first administrator: %w", err)
		}
		if err := m.storeFirstKey(ctx, tx, boot); err != nil {
			return err
		}
		secrets, err := json.Marshal(boot) //nolint:gosec // it is sealed, and deleted once it was shown
		if err != nil {
			return err
		}
		return tx.KeepUnshown(ctx, secrets)
	})
	if errors.Is(err, errSetUp) {
		return nil, nil
	}
	return boot, err
}

// errSetUp says that another node has set up the database in the meantime.
var errSetUp = errors.New("the database is set up")

func (m *Modules) storeFirstKey(ctx context.Context, tx *store.Tx, boot *FirstBoot) error {
	if given := m.Settings.Secrets.APIKey; given != "" {
		return m.Auth.StoreKey(ctx, tx, firstKey, string(given))
	}
	key, err := m.Auth.IssueKey(ctx, tx, firstKey)
	boot.APIKey = key.Key
	return err
}

// unshown returns what an earlier start created but could not show, or nil.
func (m *Modules) unshown(ctx context.Context) (*FirstBoot, error) {
	secrets, err := m.DB.Unshown(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secrets of the first start: %w", err)
	}
	boot := &FirstBoot{}
	if err := json.Unmarshal(secrets, boot); err != nil {
		return nil, fmt.Errorf("secrets of the first start: %w", err)
	}
	return boot, nil
}

// Shown records that the result of [Modules.Boot] was shown. Callers must not serve requests before: a later start would
// show a password that was changed in the meantime.
func (m *Modules) Shown(ctx context.Context) error {
	if err := m.DB.Shown(ctx); err != nil {
		return fmt.Errorf("secrets of the first start: %w", err)
	}
	return nil
}
