package app

import (
	"context"
	"errors"

	"kontor/modules/developer/playground/seed"
	"kontor/modules/identity/directory"
	"kontor/server/apierr"
	"kontor/store"
)

// newSeed returns what fills a sandbox, or nil outside of one.
func (m *Modules) newSeed() *seed.Service {
	if !m.InSandbox() {
		return nil
	}
	return seed.New(seed.Options{
		DB: m.DB, Clock: m.Sandbox.Clock, Texts: m.Texts, Log: m.Log, Front: m.front, People: seeders{m.Users, m.DB}, Sessions: m.Auth,
		Busy: m.Playground.Busy(), Advance: m.Playground.AdvanceTo, Settle: m.Webhooks.Settle,
	})
}

// front returns a server for the steps of seed files: without limits of requests.
func (m *Modules) front() (seed.Front, error) {
	s := m.Settings
	s.RateLimits.Enabled = false
	return m.server(s)
}

// seeders adapts the directory for seed files.
type seeders struct {
	*directory.Service
	db *store.DB
}

// FindLogin returns the id of a user. It returns store.ErrNotFound.
func (s seeders) FindLogin(ctx context.Context, login string) (string, error) {
	user, err := s.Find(ctx, s.db, login)
	if errors.Is(err, apierr.UserNotFound) {
		return "", store.ErrNotFound
	}
	return user.ID, err
}
