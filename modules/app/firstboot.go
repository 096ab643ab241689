package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"kontor/modules/directory"
	"kontor/server/access"
	"kontor/store"
)

// defaultAdmin is the first administrator where KONTOR_ADMIN_EMAIL names none.
const defaultAdmin = "admin@kontor.localhost"

// firstKey is the name of the API key of the first start.
const firstKey = "first start"

// FirstBoot is what was made on an empty data directory. A secret that was given by the environment is not repeated.
type FirstBoot struct {
	AdminEmail    string
	AdminPassword string // random, empty when it was given
	APIKey        string // random, empty when it was given
}

// Boot makes the first administrator and the first API key on an empty database, both or neither, and returns them. It
// returns the same at each further start until [Modules.Shown] was called, so that a start that was cut off before it
// could print them leaves no installation without its secrets, and none whose printed secrets do not work. On any other
// database it does nothing and returns nil.
func (m *Modules) Boot(ctx context.Context) (*FirstBoot, error) {
	made, err := m.unshown(ctx)
	if made != nil || err != nil {
		return made, err
	}
	if any, err := m.Users.Any(ctx, m.DB); err != nil || any {
		return nil, err
	}
	secrets := m.Settings.Secrets
	made = &FirstBoot{AdminEmail: secrets.AdminEmail}
	if made.AdminEmail == "" {
		made.AdminEmail = defaultAdmin
	}
	password := string(secrets.AdminPassword)
	if password == "" {
		made.AdminPassword = rand.Text()
		password = made.AdminPassword
	}
	admin, err := m.Users.Prepare(ctx, directory.NewUser{Value: made.AdminEmail, Password: password, Roles: []string{access.Administrator}})
	if err != nil {
		return nil, fmt.Errorf("first administrator: %w", err)
	}
	err = m.DB.InTx(ctx, func(tx *store.Tx) error {
		user, err := m.Users.Store(ctx, tx, admin)
		if err == nil && made.AdminPassword != "" {
			err = m.Auth.MarkPrinted(ctx, tx, user.ID)
		}
		if err != nil {
			return fmt.Errorf("first administrator: %w", err)
		}
		if err := m.storeFirstKey(ctx, tx, made); err != nil {
			return err
		}
		kept, err := json.Marshal(made) //nolint:gosec // it is sealed, and forgotten once it was shown
		if err != nil {
			return err
		}
		return tx.KeepUnshown(ctx, kept)
	})
	return made, err
}

func (m *Modules) storeFirstKey(ctx context.Context, tx *store.Tx, made *FirstBoot) error {
	if given := m.Settings.Secrets.APIKey; given != "" {
		return m.Auth.StoreKey(ctx, tx, firstKey, string(given))
	}
	key, err := m.Auth.IssueKey(ctx, tx, firstKey)
	made.APIKey = key.Key
	return err
}

// unshown returns what an earlier start has made and could not show, or nil.
func (m *Modules) unshown(ctx context.Context) (*FirstBoot, error) {
	kept, err := m.DB.Unshown(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secrets of the first start: %w", err)
	}
	made := &FirstBoot{}
	if err := json.Unmarshal(kept, made); err != nil {
		return nil, fmt.Errorf("secrets of the first start: %w", err)
	}
	return made, nil
}

// Shown says that what [Modules.Boot] has returned was shown. Requests may be served only after that: a password that was
// changed must not be shown again.
func (m *Modules) Shown(ctx context.Context) error {
	if err := m.DB.Shown(ctx); err != nil {
		return fmt.Errorf("secrets of the first start: %w", err)
	}
	return nil
}
