package commands

import (
	"context"
	"fmt"
	"net"

	"kontor/modules/app"
	"kontor/modules/demo"
	"kontor/server/settings"
)

// serveDemo serves the demo data. It creates the data at the first start.
func serveDemo(ctx context.Context, p Process, r *settings.Result, o openOptions, listener net.Listener) error {
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
			if err := loadDemo(ctx, m, mark, clock); err != nil {
				return err
			}
		}
		if err := demo.PrintSignIns(p.Stdout, s.Server.BaseURL, mark); err != nil {
			o.log.Warn("the sign-ins of the demo could not be printed", "err", err)
		}
		return run(ctx, p, m, r, o.log, listener)
	})
}

// loadDemo fills the empty database. The mark holds its secrets, which every start prints.
func loadDemo(ctx context.Context, m *app.Modules, mark *demo.Mark, clock *demo.Clock) error {
	boot, err := m.Boot(ctx)
	if err != nil {
		return err
	}
	key := boot.APIKey
	if mark.APIKey = key; key == "" {
		key = string(m.Settings.Secrets.APIKey)
	}
	if err := demo.Load(ctx, m, clock, key, mark); err != nil {
		return fmt.Errorf("create the demo data: %w", err)
	}
	if err := m.Shown(ctx); err != nil {
		return err
	}
	return mark.Save(true)
}
