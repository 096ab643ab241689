package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/server/settings"
	"kontor/store/inspect"
	"kontor/store/transfer"
)

// isShared reports whether the settings name a PostgreSQL database.
func isShared(r *settings.Result) bool { return r.Settings.Data.URL != "" }

// placeName names the data for messages: the data directory, or the database without its password.
func placeName(r *settings.Result) string {
	if isShared(r) {
		return settings.DatabaseName(string(r.Settings.Data.URL))
	}
	return r.Settings.Data.Dir
}

// databaseOf returns where a command reads without opening the database.
func databaseOf(r *settings.Result) inspect.Source {
	return inspect.Source{Dir: r.Settings.Data.Dir, URL: string(r.Settings.Data.URL), SecretKey: string(r.Settings.Secrets.SecretKey),
		PreviousKey: string(r.Settings.Secrets.PreviousKey)}
}

// storeDir returns the directory of the store. With a database server it is only used if it was set, for what the node has seen of
// the database.
func storeDir(r *settings.Result) string {
	if isShared(r) && r.Source("data.dir") == settings.FromDefault {
		return ""
	}
	return r.Settings.Data.Dir
}

// cacheDir returns the directory for what can be built again; "" for none. A node need not have a directory.
func cacheDir(r *settings.Result) string {
	dir := storeDir(r)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "cache")
}

// nodeName returns the name of this process in the list of nodes. That of a command differs from the node of the same machine.
func nodeName(r *settings.Result, command bool) string {
	name := r.Settings.Cluster.Node
	if name == "" {
		name, _ = os.Hostname() // without a name the store uses the id of the process
	}
	if command && name != "" {
		name += "-command"
	}
	return name
}

// requireData rejects a database that does not exist. Opening it would create a new one, so that a mistyped name would look like
// success.
func requireData(ctx context.Context, r *settings.Result) error {
	if isShared(r) {
		return requireDatabase(ctx, r)
	}
	dir := r.Settings.Data.Dir
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		return fmt.Errorf("there is no data in %s; start the server once, or name its directory with --data.dir", dir)
	}
	return nil
}

// readable checks the settings of a command that reads without opening the database.
func readable(r *settings.Result) (inspect.Source, error) {
	return databaseOf(r), checkDatabase(&r.Settings)
}

// requireDatabase rejects a PostgreSQL database without a schema.
func requireDatabase(ctx context.Context, r *settings.Result) error {
	if err := checkDatabase(&r.Settings); err != nil {
		return err
	}
	empty, err := transfer.Empty(ctx, transfer.Place{URL: string(r.Settings.Data.URL), Name: placeName(r)})
	if err == nil && empty {
		err = fmt.Errorf("there is no data in %s; start the server once, or name its database in KONTOR_DATA_URL", placeName(r))
	}
	return err
}

// newKeyCommand prints a new master key.
const newKeyCommand = "openssl rand -hex 32"

// checkDatabase checks the settings that belong to data.url, and the files that it names, before anything is created.
func checkDatabase(s *settings.Settings) error {
	if s.Data.URL == "" {
		return nil
	}
	if s.Secrets.SecretKey == "" {
		return errors.New("KONTOR_SECRET_KEY must be set with data.url, to the same master key on every node; make one for a new database with: " + newKeyCommand)
	}
	if _, err := pgconn.ParseConfig(string(s.Data.URL)); err != nil {
		if cause := errors.Unwrap(err); cause != nil { // err itself shows the address
			err = cause
		}
		return fmt.Errorf("data.url cannot be used: %w", err)
	}
	return nil
}

// notShared returns the error of a command that only a data directory has.
func notShared(r *settings.Result, instead string) error {
	if !isShared(r) {
		return nil
	}
	return errors.New("with data.url, " + instead)
}

const (
	postgresBacksUp = "PostgreSQL makes backups and restores them: use pg_dump or WAL archiving, see \"Backup\" in docs/cluster.md"
	keyIsGiven      = "the master key is in KONTOR_SECRET_KEY; keep a copy of that value apart from the backups"
)
