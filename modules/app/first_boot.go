package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"kontor/modules/developer/playground"
	"kontor/modules/developer/requestlog"
	"kontor/modules/identity/directory"
	"kontor/server"
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

// sandboxAdmin is the id of the first administrator of each sandbox, so that the same seed file makes records that name the same user.
const sandboxAdmin = "019b76da-a800-7001-a67b-e371c5155e9d"

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
	first := directory.NewUser{Value: boot.AdminEmail, Password: password, Roles: []string{access.Administrator}}
	if m.InSandbox() {
		first.ID = sandboxAdmin
	}
	admin, err := m.Users.Prepare(ctx, first)
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

// Sandbox makes the modules a sandbox for developers, see docs/sandbox.md.
type Sandbox struct {
	Clock  *store.ShiftedClock // of the database
	Public bool                // other machines may call the endpoints of the sandbox
	// Restart resets the sandbox; nil: it cannot be reset. Rounds is how often it has begun.
	Restart playground.Restart
	Keep    playground.Keep
	Rounds  int
}

// InSandbox reports whether the modules are a sandbox.
func (m *Modules) InSandbox() bool { return m.Sandbox != nil }

// newPlayground returns the sandbox mode, or nil outside of a sandbox.
func (m *Modules) newPlayground() *playground.Service {
	if !m.InSandbox() {
		return nil
	}
	return playground.New(playground.Options{
		DB: m.DB, Log: m.Log, Clock: m.Sandbox.Clock, Gate: &m.jobGate, Jobs: m.playgroundJobs,
		Queues: []playground.Queue{m.Deliveries, m.Webhooks}, Notices: m.Notifications, Restart: m.Sandbox.Restart, Keep: m.Sandbox.Keep,
	})
}

// playgroundJobs returns the regular jobs, and when those have something to do that depend on the hour.
func (m *Modules) playgroundJobs() (jobs []playground.Job) {
	appointments := map[string]func(ctx context.Context, after store.Time) (*store.Time, error){
		"rbac.terms":   m.RBAC.NextTerm,
		"tasks.remind": m.nextReminder,
	}
	for _, job := range m.Jobs() {
		run := func(ctx context.Context) error {
			err := runOnce(ctx, job)
			m.jobRuns.count(job.Name, err != nil && ctx.Err() == nil)
			return err
		}
		jobs = append(jobs, playground.Job{Name: job.Name, Every: job.Every, Run: run, Next: appointments[job.Name]})
	}
	return jobs
}

// nextReminder returns when tasks are next reminded of.
func (m *Modules) nextReminder(_ context.Context, after store.Time) (*store.Time, error) {
	const day = 24 * time.Hour
	at := store.Time(after.Std().Truncate(day).Add(time.Duration(m.Settings.Tasks.ReminderHour) * time.Hour).UnixMilli())
	if at <= after {
		at = at.Add(day)
	}
	return &at, nil
}

// sandboxRequests is how many requests a sandbox keeps.
const sandboxRequests = 10_000

// newRequests builds the log of requests.
func newRequests(m *Modules) *requestlog.Service {
	keep := m.Settings.Requests.Keep
	if m.InSandbox() {
		keep = cmp.Or(keep, sandboxRequests)
	}
	node := m.Settings.Cluster.Node
	if node == "" {
		node, _ = os.Hostname() // a machine without a name has none
	}
	return requestlog.New(m.DB, m.Auth, rights{m}, requestlog.Options{
		Keep: keep, Bodies: m.InSandbox(), Node: node, BaseURL: m.Settings.Server.BaseURL, Heartbeat: m.Settings.Notifications.SSE.Heartbeat,
		ConnectionsPerUser: m.Settings.Notifications.SSE.ConnectionsPerUser, Policy: m.Policy, TermsDue: m.termsDue(&m.held.requests), Texts: m.Texts, Log: m.Log,
	})
}

// requests returns what notes the requests of the server; nil if the log is off.
func (m *Modules) requests() server.Requests {
	if !m.Requests.On() {
		return nil
	}
	return m.Requests
}

// rights answers with the permission check.
type rights struct{ modules *Modules }

// Look reports whether a record exists, and whether a user has the permission on it now.
func (r rights) Look(ctx context.Context, userID string, t access.RecordType, wanted access.Permission, id string) (exists, allowed bool, err error) {
	roles, err := r.modules.Users.RolesOf(ctx, r.modules.DB, userID)
	if err != nil {
		return false, false, err
	}
	caller := access.Caller{UserID: userID, Roles: roles}.WithPolicy(r.modules.Policy.Load())
	decisions, err := r.modules.RBAC.Decide(ctx, caller, []access.Check{{RecType: t.Name, Permission: wanted.String(), RecID: id}})
	if err != nil {
		return false, false, err
	}
	return !decisions[0].Missing, decisions[0].Allowed, nil
}
