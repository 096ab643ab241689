package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/backup"
	"kontor/store/datadir"
)

// key returns the commands about keys.
func (l *commandLine) key() *cobra.Command {
	return group("key", "Rotate, export and import the master key.", l.rotateKey(), l.keyStatus(), l.exportKey(), l.importKey(), l.revokeUnused())
}

func (l *commandLine) exportKey() *cobra.Command {
	var name string
	var force bool
	cmd := &cobra.Command{
		Use: "export <file>", Short: "Write the master key to a file, to keep it apart from the backups.",
		Long: `The file gets the mode 0600; an existing file is rejected. "-" is standard
output. The server may be running.

With the key and a backup, anybody can read sealed values and sign in as
anybody: keep the two apart. The command reads the data directory without
opening the database, so that the export is not in the audit trail.`,
		Example: "kontor key export /media/safe/kontor.key\nkontor key export - | gpg --encrypt --recipient safe > kontor.key.gpg",
		Args:    arguments(&name),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			return exportKey(ctx, p, r, name, force)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "Print the key although standard output is a terminal.")
	return cmd
}

func exportKey(ctx context.Context, p Process, r *settings.Result, name string, force bool) error {
	if err := notShared(r, keyIsGiven); err != nil {
		return err
	}
	if name == standardStream && isTerminal(p.Stdout) && !force {
		return errors.New("the key would appear on the terminal; name a file, redirect the output, or use --force")
	}
	p.warn(r)
	if name != standardStream {
		if err := backup.ExportKey(ctx, databaseOf(r), name); err != nil {
			return err
		}
		return p.say("the master key of %s was exported to %s; keep it apart from the backups", r.Settings.Data.Dir, name)
	}
	text, err := backup.ReadKey(ctx, databaseOf(r))
	if err != nil {
		return err
	}
	_, err = p.Stdout.Write(text)
	return err
}

func (l *commandLine) importKey() *cobra.Command {
	var name string
	return &cobra.Command{
		Use: "import <file>", Short: "Put the master key into a restored data directory.",
		Long: `The file was written by "kontor key export"; "-" reads standard input. The
server must be stopped. The key is compared with the database first: the key of
another database is rejected. A key that is in the directory is never replaced
by another one. The import is not in the audit trail.`,
		Example: "kontor key import /media/safe/kontor.key --data.dir=/var/lib/kontor", Args: arguments(&name),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			if err := notShared(r, keyIsGiven); err != nil {
				return err
			}
			text, err := p.readKey(name)
			if err != nil {
				return fmt.Errorf("%s cannot be read: %w", name, datadir.Cause(err))
			}
			if err := backup.ImportKey(ctx, r.Settings.Data.Dir, string(text)); err != nil {
				return err
			}
			return p.say("the master key was imported to %s; run \"kontor check\" before you start the server", r.Settings.Data.Dir)
		}),
	}
}

// maxKeyFileBytes exceeds the length of every key file.
const maxKeyFileBytes = 4 << 10

func (p Process) readKey(name string) ([]byte, error) {
	file, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxKeyFileBytes))
}

// keyRequest is what a command about keys or the sandbox asks of the modules, in its own process or in that of the server.
type keyRequest struct {
	Command     string `json:"command"`
	Compromised bool   `json:"compromised,omitempty"`
	UnusedDays  int    `json:"unused_days,omitempty"`
	SecretKey   string `json:"secret_key,omitempty"`
	PreviousKey string `json:"previous_key,omitempty"`
	Advance     string `json:"advance,omitempty"` // a duration of ISO 8601
	To          string `json:"to,omitempty"`

	File     string            `json:"file,omitempty"` // a seed file
	Scenario string            `json:"scenario,omitempty"`
	Set      map[string]string `json:"set,omitempty"`
	Language string            `json:"language,omitempty"`
	User     string            `json:"user,omitempty"` // a sign-in value
}

// The commands of a keyRequest.
const (
	askRotate  = "rotate"
	askSigning = "signing"
	askRevoke  = "revoke"
	askStatus  = "status"
	askListen  = "listen" // where the server listens
	askClock   = "clock"
	askAdvance = "advance"
	askReset   = "reset"
	askFirst   = "reset to the first start"
	askKeep    = "keep"
	askRounds  = "rounds" // how often the sandbox has begun

	askSeed      = "seed"
	askTrigger   = "trigger"
	askScenarios = "scenarios"
	askSession   = "session" // of the first administrator
	askExport    = "export"
	askLink      = "link" // that signs in
)

// ofSandbox are the commands for a sandbox only.
var ofSandbox = []string{askClock, askAdvance, askReset, askFirst, askKeep, askRounds, askSeed, askTrigger, askScenarios, askSession, askExport}

// sealProgress is how many values of a column were sealed again.
type sealProgress struct {
	Column string `json:"column"`
	Values int64  `json:"values"`
}

// run does what a request asks for.
func (k keyRequest) run(ctx context.Context, m *app.Modules, answer func(controlAnswer)) error {
	say := func(format string, args ...any) { answer(controlAnswer{Text: fmt.Sprintf(format, args...)}) }
	if !m.InSandbox() && slices.Contains(ofSandbox, k.Command) {
		return errors.New("the server is no sandbox; start it with: kontor serve --sandbox")
	}
	switch k.Command {
	case askRotate:
		return k.rotate(ctx, m, answer, say)
	case askSigning:
		if err := m.Auth.RotateSigningKey(ctx, k.Compromised); err != nil {
			return err
		}
		if k.Compromised {
			say("a new key signs access tokens; those of former keys are rejected, and clients refresh them")
		} else {
			say("a new key signs access tokens; those of the former key stay valid until they expire")
		}
	case askRevoke:
		n, err := m.Auth.RevokeUnusedKeys(ctx, m.DB.Now().Add(-time.Duration(k.UnusedDays)*24*time.Hour))
		say("%d API keys were revoked", n)
		return err
	case askSeed:
		return k.playSeed(ctx, m, say)
	case askTrigger:
		return k.playScenario(ctx, m, say)
	case askScenarios:
		return k.listScenarios(m, say)
	case askSession:
		token, err := m.Seed.AdministratorToken(ctx)
		if err == nil {
			say("%s", token)
		}
		return err
	case askExport:
		file, err := m.Seed.Export(ctx)
		if err != nil {
			return inWords(m, err)
		}
		say("%s", bytes.TrimSpace(file))
	case askClock:
		say("%s", m.DB.Now())
	case askAdvance:
		return k.moveClock(ctx, m, say)
	case askReset, askFirst:
		_, err := m.Playground.Reset(k.Command == askFirst)
		return inWords(m, err)
	case askKeep:
		took, err := m.Playground.KeepState(ctx)
		if err != nil {
			return inWords(m, err)
		}
		say("resets go back to the present state; keeping it took %d ms", took.Milliseconds())
	case askRounds:
		say("%d", m.Sandbox.Rounds)
	case askLink:
		return k.makeLink(ctx, m, say)
	case askListen:
		say("%s", m.Settings.Server.Listen)
	case askStatus:
		return describeKeys(ctx, m, say)
	default:
		return fmt.Errorf("the server does not know the command %q", k.Command)
	}
	return nil
}

func (k keyRequest) rotate(ctx context.Context, m *app.Modules, answer func(controlAnswer), say func(string, ...any)) error {
	resumed, err := m.DB.RotateMasterKey(ctx, store.Rotation{SecretKey: k.SecretKey, PreviousKey: k.PreviousKey, Compromised: k.Compromised,
		Report: func(r store.Resealed) {
			answer(controlAnswer{Progress: &sealProgress{Column: r.Table + "." + r.Column, Values: r.Values}})
		}})
	if err != nil {
		return err
	}
	if resumed {
		say("the rotation of the master key that was interrupted is complete; run the command again for another one")
	} else {
		say("the master key was replaced and every sealed value is sealed with new keys")
	}
	if n, err := m.Auth.OlderKeys(ctx); err != nil {
		return err
	} else if n > 0 {
		say("%d API keys keep their former hash until they are used; \"kontor key status\" counts them", n)
	}
	return nil
}

// describeKeys says which keys there are and what remains of former ones.
func describeKeys(ctx context.Context, m *app.Modules, say func(string, ...any)) error {
	state, err := m.DB.KeyState(ctx)
	if err != nil {
		return err
	}
	place := "in the environment (KONTOR_SECRET_KEY)"
	if state.InFile {
		place = "in the data directory"
	}
	say("master key: %s, replaced %d times", place, len(state.Generations)-1)
	for i, g := range state.Generations {
		since, use := "the first one", "in use"
		if g.CreatedAt != 0 {
			since = "since " + g.CreatedAt.String()
		}
		if i < len(state.Generations)-1 {
			use = "replaced"
			if g.Opens {
				use = "replaced; kept until its last values have expired"
			}
		}
		say("generation %d: %s, %s", g.Number, since, use)
	}
	if state.Resealing {
		say("a rotation is not complete; it continues by itself, or with \"kontor key rotate\"")
	}
	for _, r := range state.Remaining {
		say("%s.%s: %d values of former generations", r.Table, r.Column, r.Values)
	}
	n, err := m.Auth.OlderKeys(ctx)
	if err != nil {
		return err
	}
	say("API keys with a hash of former generations: %d", n)
	for _, k := range m.Auth.SigningKeys() {
		use := "signs access tokens"
		if k.RetiredAt != nil {
			use = "retired at " + k.RetiredAt.String() + ", verifies tokens until they expire"
		}
		say("signing key %s: since %s, %s", k.KID, k.CreatedAt, use)
	}
	return nil
}

// askKeys sends a request to the server of the data directory, or does it in this process when none is running. With a PostgreSQL
// database this process does it as a node.
func askKeys(ctx context.Context, p Process, r *settings.Result, request keyRequest) error {
	request.SecretKey, request.PreviousKey = string(r.Settings.Secrets.SecretKey), string(r.Settings.Secrets.PreviousKey)
	var last sealProgress
	flush := func() {
		if last.Values > 0 {
			fmt.Fprintf(p.Stdout, "%s: %d values sealed\n", last.Column, last.Values)
		}
		last = sealProgress{}
	}
	show := func(a controlAnswer) {
		switch {
		case a.Progress == nil:
			flush()
			fmt.Fprintln(p.Stdout, a.Text)
			return
		case a.Progress.Column != last.Column && last.Column != "" || a.Progress.Values-last.Values >= progressStep:
			flush()
		}
		last = *a.Progress
	}
	defer flush()
	if !isShared(r) {
		err := askServer(ctx, r.Settings.Data.Dir, request, show)
		if !errors.Is(err, errNoServer) {
			p.warn(r)
			return err
		}
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error { return request.run(ctx, m, show) })
}

// progressStep is the number of values after which the progress of a column is printed.
const progressStep = 10_000

func (l *commandLine) rotateKey() *cobra.Command {
	var signing bool
	request := keyRequest{Command: askRotate}
	cmd := &cobra.Command{
		Use: "rotate", Short: "Replace the master key, or the key that signs access tokens.",
		Long: `The server may be running. Every sealed value is sealed with new keys, and from
then on the former master key opens nothing of this database. Backups from
before need the former key: keep it for as long as them, and export the new key.
After an interruption, the same command or the next start continues.

If KONTOR_SECRET_KEY holds the master key, set the new key there and the present
one in KONTOR_SECRET_KEY_PREVIOUS. Either restart the server with both, or run
the command with both and then restart the server with the new key.`,
		Example: "kontor key rotate\nkontor key rotate --compromised\nkontor key rotate --signing", Args: arguments(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			if signing {
				request.Command = askSigning
			}
			err := askKeys(ctx, p, r, request)
			switch {
			case err != nil || signing:
				return err
			case r.Settings.Secrets.SecretKey == "":
				return p.say("Keep the former key for as long as you keep backups from before.\nExport the new key now: kontor key export FILE")
			}
			return p.say("Keep the former key for as long as you keep backups from before.\n" +
				"Start the server with the new key in KONTOR_SECRET_KEY, and without KONTOR_SECRET_KEY_PREVIOUS.")
		}),
	}
	cmd.Flags().BoolVar(&signing, "signing", false, "Replace only the key that signs access tokens.")
	cmd.Flags().BoolVar(&request.Compromised, "compromised", false,
		"The former key has leaked: reject at once every access token that was issued before. Clients refresh theirs; nobody is signed out.")
	return cmd
}

func (l *commandLine) keyStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the age of the keys, and what remains of former ones.", Long: "The server may be running.",
		Example: "kontor key status", Args: arguments(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			return askKeys(ctx, p, r, keyRequest{Command: askStatus})
		}),
	}
}

func (l *commandLine) revokeUnused() *cobra.Command {
	request := keyRequest{Command: askRevoke}
	cmd := &cobra.Command{
		Use: "revoke-unused --days=<n>", Short: "Revoke API keys that have not been used since a rotation.",
		Long: `The server may be running. Only API keys that have not been used since the last
rotation of the master key are revoked: their stored hashes are of a former key,
which can be removed when none is left.`,
		Example: "kontor key revoke-unused --days=90", Args: arguments(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			if request.UnusedDays < 1 {
				return errors.New("--days must be 1 or more")
			}
			return askKeys(ctx, p, r, request)
		}),
	}
	cmd.Flags().IntVar(&request.UnusedDays, "days", 0, "`Days` since the last use.")
	required(cmd, "days")
	return cmd
}
