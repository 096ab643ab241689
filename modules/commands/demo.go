package commands

import (
	"context"
	"fmt"

	"kontor/modules/app"
	"kontor/modules/demo"
	"kontor/server/settings"
	"kontor/store"
)

// serveDemo serves the demo data. It creates the data at the first start.
func serveDemo(ctx context.Context, p Process, r *settings.Result, o openOptions, open *listeners) error {
	s := &r.Settings
	if err := notShared(r, "create the demo in a directory, and copy it: kontor serve --demo --data.dir=demo-data, and then kontor copy --from demo-data --to URL"); err != nil {
		return err
	}
	manifest, err := demo.Prepare(s.Data.Dir, s.Secrets.AdminEmail, string(s.Secrets.AdminPassword))
	if err != nil {
		return err
	}
	if !manifest.Complete {
		if err := manifest.Begin(); err != nil {
			return err
		}
	}
	s.Secrets.AdminEmail, s.Secrets.AdminPassword = manifest.Admin, settings.Secret(manifest.Password)
	load := func(m *app.Modules) error {
		if manifest.Complete {
			return nil
		}
		return loadDemo(ctx, m, manifest, o.sandbox.Clock)
	}
	return serveSandbox(ctx, p, r, o, open, load, func(m *app.Modules) error {
		if err := demo.PrintSignIns(p.Stdout, s.Server.BaseURL, manifest); err != nil {
			o.log.Warn("the sign-ins of the demo could not be printed", "err", err)
		}
		return nil
	})
}

// loadDemo fills the empty database. The manifest holds its secrets, which every start prints.
func loadDemo(ctx context.Context, m *app.Modules, manifest *demo.Manifest, clock *store.ShiftedClock) error {
	boot, err := m.Boot(ctx)
	if err != nil {
		return err
	}
	key := boot.APIKey
	if manifest.APIKey = key; key == "" {
		key = string(m.Settings.Secrets.APIKey)
	}
	if err := demo.Load(ctx, m, clock, key, manifest); err != nil {
		return fmt.Errorf("create the demo data: %w", err)
	}
	if err := m.Shown(ctx); err != nil {
		return err
	}
	return manifest.Save(true)
}
