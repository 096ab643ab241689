package commands

import (
	"context"
	"fmt"
	"net"

	"kontor/modules/app"
	"kontor/modules/demo"
	"kontor/server/settings"
)

// serveDemo serves an invented bank, which it makes where there is none yet.
func serveDemo(ctx context.Context, p Process, r *settings.Result, o opening, listener net.Listener) error {
	s := &r.Settings
	mark, err := demo.Prepare(s.Data.Dir, s.Secrets.AdminEmail, string(s.Secrets.AdminPassword))
	if err != nil {
		return err
	}
	if !mark.Complete {
		if err := mark.Begin(); err != nil {
			return err
		}
	}
	s.Secrets.AdminEmail, s.Secrets.AdminPassword = mark.Admin, settings.Secret(mark.Password)
	clock := &demo.Clock{}
	o.clock = clock
	return withModules(ctx, r, o, func(m *app.Modules) error {
		if !mark.Complete {
			if err := makeDemo(ctx, m, mark, clock); err != nil {
				return err
			}
		}
		if err := demo.PrintSignIns(p.Stdout, s.Server.BaseURL, mark); err != nil {
			o.log.Warn("the sign-ins of the demo could not be printed", "err", err)
		}
		return run(ctx, p, m, r, o.log, listener)
	})
}

// makeDemo fills the fresh database. Its secrets are in the mark, which every start prints.
func makeDemo(ctx context.Context, m *app.Modules, mark *demo.Mark, clock *demo.Clock) error {
	made, err := m.Boot(ctx)
	if err != nil {
		return err
	}
	key := made.APIKey
	if mark.APIKey = key; key == "" {
		key = string(m.Settings.Secrets.APIKey)
	}
	if err := demo.Load(ctx, m, clock, key, mark); err != nil {
		return fmt.Errorf("make the demo: %w", err)
	}
	if err := m.Shown(ctx); err != nil {
		return err
	}
	return mark.Save(true)
}
