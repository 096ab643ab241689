package modules

import (
	"context"
	"crypto/rand"
	"fmt"

	"kontor/modules/users"
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

const countUsers = `SELECT COUNT(*) FROM users`

// Boot makes the first administrator and the first API key on an empty database, both or neither. On any other it does
// nothing and gives nil.
func (m *Modules) Boot(ctx context.Context) (*FirstBoot, error) {
	var n int
	if err := m.DB.QueryRow(ctx, countUsers).Scan(&n); err != nil || n > 0 {
		return nil, err
	}
	secrets := m.Settings.Secrets
	made := &FirstBoot{AdminEmail: secrets.AdminEmail}
	if made.AdminEmail == "" {
		made.AdminEmail = defaultAdmin
	}
	password := string(secrets.AdminPassword)
	if password == "" {
		made.AdminPassword = rand.Text()
		password = made.AdminPassword
	}
	admin, err := m.Users.Prepare(ctx, users.NewUser{Value: made.AdminEmail, Password: password, Roles: []string{access.Administrator}})
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
		if secrets.APIKey != "" {
			return m.Auth.StoreKey(ctx, tx, firstKey, string(secrets.APIKey))
		}
		key, err := m.Auth.IssueKey(ctx, tx, firstKey)
		made.APIKey = key.Key
		return err
	})
	return made, err
}
