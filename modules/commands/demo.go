package commands

import (
	"context"
	"fmt"
	"net"

	"kontor/modules"
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
	s.Secrets.AdminEmail, s.Secrets.AdminPassword = mark.Admin, settings.Secret(mark.Password)
	clock := &demo.Clock{}
	o.clock = clock
	return withModules(ctx, r, o, func(m *modules.Modules) error {
		var key string
		if !mark.Complete {
			if key, err = makeDemo(ctx, m, mark, clock); err != nil {
				return err
			}
		}
		if err := demo.PrintSignIns(p.Stdout, s.Server.BaseURL, mark, key); err != nil {
			o.log.Warn("the sign-ins of the demo could not be printed", "err", err)
		}
		return run(ctx, m, r, o.log, listener)
	})
}

// makeDemo fills the fresh database. It gives the API key that was made where none was given.
func makeDemo(ctx context.Context, m *modules.Modules, mark *demo.Mark, clock *demo.Clock) (string, error) {
	if err := mark.Save(false); err != nil {
		return "", err
	}
	made, err := m.Boot(ctx)
	if err != nil {
		return "", err
	}
	key := made.APIKey
	if key == "" {
		key = string(m.Settings.Secrets.APIKey)
	}
	if err := demo.Load(ctx, m, clock, key, mark); err != nil {
		return "", fmt.Errorf("make the demo: %w", err)
	}
	return made.APIKey, mark.Save(true)
}
