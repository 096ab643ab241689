// Package app assembles Kontor: it builds all modules on one database, passes each module the others that it depends on,
// and joins their endpoints into one table. No other package imports several modules.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kontor/locales"
	"kontor/modules/app/certificates"
	"kontor/modules/bank/chats"
	"kontor/modules/bank/customers"
	"kontor/modules/bank/files"
	"kontor/modules/bank/imports"
	"kontor/modules/bank/invoices"
	"kontor/modules/bank/invoices/qrbill"
	"kontor/modules/bank/payers"
	"kontor/modules/bank/personas"
	"kontor/modules/bank/tasks"
	"kontor/modules/developer/playground"
	"kontor/modules/developer/playground/seed"
	"kontor/modules/developer/requestlog"
	"kontor/modules/duty/audit"
	"kontor/modules/duty/privacy"
	"kontor/modules/duty/screening"
	"kontor/modules/identity/auth"
	"kontor/modules/identity/authzen"
	"kontor/modules/identity/directory"
	"kontor/modules/identity/factors"
	"kontor/modules/identity/oidc"
	"kontor/modules/identity/profile"
	"kontor/modules/identity/rbac"
	"kontor/modules/identity/serviceaccounts"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/modules/reach/changes"
	"kontor/modules/reach/deliveries"
	"kontor/modules/reach/notifications"
	"kontor/modules/reach/search"
	"kontor/modules/reach/webhooks"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/backup/continuous"
)

// Options configure the modules.
type Options struct {
	Settings settings.Settings
	Log      *slog.Logger
	Hash     auth.HashCost // zero means the cost for production
	// HashInChildren hashes passwords in child processes. For servers.
	HashInChildren bool
	Progress       func(done, total int) // takes the progress of a start that brings the records of an earlier version up to date; nil: none
	Release        string                // the version of the program, such as 1.2.3; empty means a build from the sources
	Sandbox        *Sandbox              // makes the modules a sandbox for developers; nil: it is off
	CacheDir       string                // keeps what can be rebuilt, such as the compiled PDF engine; empty means no cache
}

// Modules are all modules on one database.
type Modules struct {
	Options
	DB     *store.DB
	Texts  *locales.Bundle
	Policy *access.Current

	Auth          *auth.Service
	Users         *directory.Service
	OIDC          *oidc.Service
	Factors       *factors.Service
	Services      *serviceaccounts.Service
	RBAC          *rbac.Service
	AuthZEN       *authzen.Service
	Audit         *audit.Service
	Personas      *personas.Service
	Customers     *customers.Service
	Payers        *payers.Service
	Chats         *chats.Service
	Tasks         *tasks.Service
	Profile       *profile.Service
	Files         *files.Service
	Imports       *imports.Service
	Invoices      *invoices.Service
	Privacy       *privacy.Service
	Deliveries    *deliveries.Service
	Notifications *notifications.Service
	Certificates  *certificates.Cache
	Changes       *changes.Service
	Webhooks      *webhooks.Service
	Search        *search.Service
	Requests      *requestlog.Service
	Playground    *playground.Service // nil outside of a sandbox
	Screening     *screening.Service
	Seed          *seed.Service // nil outside of a sandbox

	held    held
	warned  atomic.Pointer[string] // the last difference of settings in the log
	table   []endpoint.Endpoint
	backup  atomic.Pointer[continuous.Shipper] // nil before Work, and without a target
	bills   *qrbill.Reader
	jobRuns *JobRuns
	built   atomic.Bool  // New has ended
	jobGate sync.RWMutex // held for reading by each run of a job, for writing while the sandbox runs them
}

// New builds the modules. Every request is rejected before [Modules.Start].
func New(db *store.DB, o Options) (*Modules, error) {
	texts := locales.Lazy()
	db.SetOrigin(origin)
	db.RegisterMoments(store.AnswerMoment)
	var err error
	m := &Modules{Options: o, DB: db, Texts: texts, Policy: &access.Current{}}
	m.keepChanges()
	if m.Deliveries, err = newDeliveries(m); err != nil {
		return nil, err
	}
	m.Notifications = newNotifications(m)
	if m.Auth, err = auth.New(db, auth.Options{
		AccessToken: o.Settings.Auth.AccessToken, RefreshToken: o.Settings.Auth.RefreshToken,
		SessionIdle: o.Settings.Auth.SessionIdle, SessionsMax: o.Settings.Auth.SessionsMax,
		FreeAttempts: o.Settings.Auth.CoolingOff.FreeAttempts, BasePause: o.Settings.Auth.CoolingOff.Base, MaxPause: o.Settings.Auth.CoolingOff.Max,
		RequiredRoles: o.Settings.Auth.MFA.RequiredRoles, FactorGrace: o.Settings.Auth.MFA.Grace,
		SigningKeyAge:     time.Duration(o.Settings.Auth.SigningKeyDays) * 24 * time.Hour,
		PasswordMinLength: o.Settings.Auth.PasswordMinLength, BreachedPasswords: o.Settings.Auth.BreachedPasswords, Hash: o.Hash, HashInChildren: o.HashInChildren,
		LoginKey: directory.LoginKey, FormerKey: directory.FormerKey, Events: m.Notifications, Changed: m.callerChanged,
		Texts: texts, Log: o.Log,
	}); err != nil {
		return nil, err
	}
	m.Users = directory.New(db, m.Auth, messages{m.Notifications}, texts, directory.Options{
		OTPLife: o.Settings.Auth.OTP, OTPAttempts: o.Settings.Auth.OTPAttempts, InvitationLife: o.Settings.Auth.Invitation, InviteAny: m.InSandbox(),
		PerHour: codesPerHour(o.Settings.RateLimits), Log: o.Log, Policy: m.Policy})
	m.OIDC = newOIDC(m)
	m.Factors = factors.New(db, m.Auth, m.Notifications, texts, factors.Options{BaseURL: o.Settings.Server.BaseURL, Issuer: issuer(o.Settings), Log: o.Log})
	m.Services = serviceaccounts.New(m.DB, m.users(), m.Auth, m.Notifications,
		serviceaccounts.Options{CheckHolds: m.checkHolds, Texts: m.Texts, Log: m.Log})
	m.Personas = personas.New(db, texts)
	m.Customers = customers.New(db, m.Notifications, m.Users, m.Personas, customers.Options{FourEyes: o.Settings.KYC.FourEyes, Texts: texts})
	m.Payers = payers.New(db, m.Customers, texts)
	m.Tasks = tasks.New(db, m.Notifications, m.Customers, m.Users, texts)
	m.Tasks.ReminderHour = o.Settings.Tasks.ReminderHour
	m.Chats = chats.New(db, messages{m.Notifications}, m.users(), texts)
	m.Profile = profile.New(db, texts, profile.Options{MaxBytes: o.Settings.Profile.AvatarMaxBytes, MaxPixels: o.Settings.Profile.AvatarMaxPixels})
	m.bills = qrbill.NewReader(qrbill.Config{
		Limits:   qrbill.Limits{Bytes: int(o.Settings.Invoices.MaxBytes), Pages: o.Settings.Invoices.MaxPages, Time: o.Settings.Invoices.Timeout},
		CacheDir: o.CacheDir, Now: db.Clock().Now,
	})
	m.Files = newFiles(m)
	m.Imports = newImports(m)
	m.Invoices = invoices.New(db, m.bills, texts, o.Settings.Invoices.KeepDays)
	m.Audit = audit.New(db, texts, o.Log)
	m.Certificates = certificates.New(db, o.Log)
	m.Changes = newChanges(m)
	m.Webhooks = newWebhooks(m)
	m.Search = newSearch(m)
	m.Requests = newRequests(m)
	m.Screening = newScreening(m)
	m.Privacy = m.newPrivacy(o)
	m.RBAC = rbac.New(db, rbac.Options{Policy: m.Policy, Users: m.Users, Notifier: m.Notifications, Personas: m.Personas, Records: m.records(), SettingRoles: settingRoles(o.Settings), Texts: texts, Log: o.Log})
	m.AuthZEN = newAuthZEN(m)
	m.Privacy.Modules = m.personalModules()
	m.Playground = m.newPlayground()
	m.Seed = m.newSeed()
	for _, module := range offering[interface{ SetQuota(q records.Quota) }](m) {
		module.SetQuota(records.Quota{Records: int64(o.Settings.Quotas.Records), Bytes: int64(o.Settings.Quotas.Megabytes) << 20})
	}
	for _, module := range offering[interface{ Endpoints() []endpoint.Endpoint }](m) {
		m.table = append(m.table, module.Endpoints()...)
	}
	if err := m.Changes.SetTable(m.table); err != nil {
		return nil, err
	}
	m.Search.SetTable(m.table)
	m.Services.SetScopes(m.table)
	m.Auth.Peers = auth.Peers{
		Users: m.Users, Factors: m.Factors, Provider: m.OIDC, ProviderName: m.OIDC.Name(), ServiceTokens: m.Services, Scopes: keyScopes(m.table),
		Methods:     map[signin.Kind]signin.Methods{signin.Credential: m.Users, signin.Factor: m.Factors, signin.Identity: m.OIDC},
		Credentials: m.Users,
	}
	m.Notifications.Peers = notifications.Peers{Sessions: m.Auth, Directory: m.Users, Chats: m.Chats}
	m.Users.Peers = directory.Peers{Terms: m.RBAC, Notifier: m.Notifications, Customers: m.Customers}
	m.Tasks.Peers = tasks.Peers{Files: m.Files}
	m.Customers.Peers = customers.Peers{Screening: m.Screening}
	if err := complete(m.Auth.Peers, m.Notifications.Peers, m.Users.Peers, m.Tasks.Peers, m.Customers.Peers); err != nil {
		return nil, err
	}
	m.jobRuns = NewJobRuns(m.Jobs())
	m.built.Store(true)
	return m, nil
}

// complete returns an error for modules that lack another one. Names may be empty.
func complete(all ...any) error {
	for _, peers := range all {
		for field, value := range reflect.ValueOf(peers).Fields() {
			if value.Kind() != reflect.String && value.IsNil() {
				return fmt.Errorf("%T.%s is missing", peers, field.Name)
			}
		}
	}
	return nil
}

// keyScopes returns the names of the endpoints that accept an API key.
func keyScopes(table []endpoint.Endpoint) []string {
	names := []string{"users.recover", "users.complete_recovery"} // took a key in earlier versions: scopes of existing keys name them
	for _, e := range table {
		if e.Access.TakesAPIKey() {
			names = append(names, e.Name)
		}
	}
	return names
}

// settingRoles returns the names or ids of the roles that settings name.
func settingRoles(s settings.Settings) []string {
	named := slices.Clone(s.Auth.MFA.RequiredRoles)
	for _, mapped := range s.Auth.OIDC.RoleMap {
		named = append(named, mapped.Role)
	}
	return named
}

// modules returns all modules, in the order of the API document. The methods of a module say what it offers to all others.
func (m *Modules) modules() []any {
	all := []any{m.Auth, m.Users, m.OIDC, m.Factors, m.Services, m.RBAC, m.AuthZEN, m.Audit, m.Personas, m.Customers, m.Imports, m.Payers, m.Chats, m.Tasks, m.Files,
		m.Profile, m.Invoices, m.Notifications, m.Deliveries, m.Privacy, m.Changes, m.Webhooks, m.Search, m.Screening, m.Requests, m.Certificates}
	if m.Playground != nil {
		all = append(all, m.Playground, m.Seed)
	}
	return all
}

// Proofs returns the record types that the audit trail covers. Notifications and deliveries are messages about records and
// are not covered; nor are the exceptions that the Proofs of a module lists.
func Proofs() []records.Proof {
	return slices.Concat(directory.Proofs(), auth.Proofs(), factors.Proofs(), oidc.Proofs(), serviceaccounts.Proofs(), rbac.Proofs(),
		customers.Proofs(), personas.Proofs(), payers.Proofs(), chats.Proofs(), tasks.Proofs(), files.Proofs(), profile.Proofs(), privacy.Proofs(), webhooks.Proofs(),
		screening.Proofs())
}

// offering returns the modules that have the methods of an interface.
func offering[I any](m *Modules) (found []I) {
	for _, module := range m.modules() {
		if one, ok := module.(I); ok {
			found = append(found, one)
		}
	}
	return found
}

// records returns the module that owns the records of each type.
func (m *Modules) records() map[access.RecordType]access.Records {
	owners := map[access.RecordType]access.Records{}
	for _, module := range offering[access.Records](m) {
		owners[module.RecordType()] = module
	}
	for _, module := range offering[interface {
		Records() map[access.RecordType]access.Records
	}](m) {
		maps.Copy(owners, module.Records())
	}
	return owners
}

// Endpoints returns the endpoints of all modules. Callers must not change the slice.
func (m *Modules) Endpoints() []endpoint.Endpoint { return m.table }

// codesPerHour returns how many one-time codes a network may request per hour. The default is the limit of public requests
// per minute. 0 means no limit.
func codesPerHour(limits settings.RateLimits) int {
	switch {
	case !limits.Enabled:
		return 0
	case limits.CodesPerHour > 0:
		return limits.CodesPerHour
	default:
		return limits.PublicPerMinute
	}
}

// Start brings the records of earlier versions up to date, and loads grants and rate limits. Nodes of a shared database start one after
// another.
func (m *Modules) Start(ctx context.Context) error { return m.DB.Exclusively(ctx, m.start) }

func (m *Modules) start(ctx context.Context) error {
	if err := m.upgradeDigests(ctx, Proofs()); err != nil {
		return err
	}
	if err := m.Auth.Start(ctx); err != nil {
		return fmt.Errorf("start sign-in: %w", err)
	}
	if err := m.Users.Start(ctx); err != nil {
		return fmt.Errorf("start users: %w", err)
	}
	if err := m.RBAC.Start(ctx, m.Endpoints()); err != nil {
		return fmt.Errorf("start access control: %w", err)
	}
	if err := m.OIDC.Start(ctx); err != nil {
		return fmt.Errorf("start the sign-in with the provider: %w", err)
	}
	if err := m.Auth.WarnOfUnknownRoles(ctx); err != nil {
		return fmt.Errorf("read the roles that require a second factor: %w", err)
	}
	if err := m.Files.Start(ctx); err != nil {
		return fmt.Errorf("start the files: %w", err)
	}
	if err := m.Changes.Start(ctx); err != nil {
		return fmt.Errorf("start the change feed: %w", err)
	}
	if err := m.Screening.Start(ctx); err != nil {
		return fmt.Errorf("start the screening: %w", err)
	}
	return m.Privacy.Start(ctx)
}

// Prepare compiles what the first request that needs it would have to wait for, unless an earlier start has done so.
func (m *Modules) Prepare(ctx context.Context) {
	if err := m.bills.Prepare(ctx); err != nil && ctx.Err() == nil {
		m.Log.Warn("the first PDF will take longer", "err", err)
	}
}

// Close ends streams, queues and worker processes, and writes buffered data. It does not close the database.
func (m *Modules) Close(ctx context.Context) error {
	m.Privacy.Close()
	m.Screening.Close()
	m.Users.Close()
	var workers sync.WaitGroup
	workers.Go(func() { m.bills.Close(ctx) })
	workers.Go(func() { m.Profile.Close(ctx) })
	defer workers.Wait()
	err := errors.Join(m.Webhooks.Close(ctx), m.Requests.Close(ctx), m.Changes.Close(ctx), m.Notifications.Close(ctx), m.Deliveries.Close(ctx), m.Auth.Close(ctx), m.Services.Close(ctx), m.Audit.Close(ctx), m.RBAC.FlushUses(ctx))
	return errors.Join(err, m.stopBackup(ctx))
}

// personalModules returns the modules with tables. The directory erases last: deliveries and auth need the credentials of a user,
// which it deletes.
func (m *Modules) personalModules() []personal.Module {
	isDirectory := func(module personal.Module) bool { return module == personal.Module(m.Users) }
	return append(slices.DeleteFunc(offering[personal.Module](m), isDirectory), m.Users)
}

// PersonalData returns what every table holds about persons.
func (m *Modules) PersonalData() []personal.Table {
	tables := ownTables()
	for _, module := range m.personalModules() {
		tables = append(tables, module.PersonalData()...)
	}
	return tables
}

func (m *Modules) newPrivacy(o Options) *privacy.Service {
	return privacy.New(m.DB, privacy.Options{
		RetentionYears: o.Settings.Privacy.RetentionYears, Customers: m.Customers, Users: m.Users, Personas: m.Personas,
		Owners: map[personal.Kind]personal.Module{personal.Customer: m.Customers, personal.User: m.Users, personal.Persona: m.Personas},
		Texts:  m.Texts, Log: o.Log,
	})
}

// ownTables lists the tables of the store and of package records.
func ownTables() []personal.Table {
	return []personal.Table{
		{Name: "storage_usage", Why: "It holds numbers of records and bytes by user id."},
		{Name: "meta", Why: "It holds signed counters and sealed secrets of the installation."},
		{Name: "audit_entries", Why: "It is append-only, and holds ids, shortened networks and keyed digests that reveal no content."},
		{Name: "audit_values", Holds: "sealed values of changed fields; the store deletes those of an erased record", Unexported: "They are former values of records that are exported, and the trail has readers of its own."},
		{Name: "idempotency_keys", Holds: "sealed answers of the last day; the store forgets those of and about an erased person", Unexported: "They are answers that the person has received, for a day."},
	}
}

// PersonalSections returns the sections of exports and reports that all modules declare.
func (m *Modules) PersonalSections() []personal.Section {
	var sections []personal.Section
	for _, module := range m.personalModules() {
		sections = append(sections, module.PersonalSections()...)
	}
	return sections
}

// keepChanges makes the store keep changed fields of the records that say so in their proofs, unless the setting is 0.
func (m *Modules) keepChanges() {
	if m.Settings.Audit.ChangedFields <= 0 {
		return
	}
	rules := map[string]store.ChangeRule{"invitations": {}, "screening_checks": {}} // they have audit entries, and no proof
	for _, p := range Proofs() {
		if p.Changes != nil {
			rules[p.Type] = *p.Changes
		}
	}
	m.DB.KeepChanges(store.Changes{Rules: rules, Erase: personal.Action})
}

// purgeChanges deletes changed fields that are older than the setting; 0 deletes all.
func (m *Modules) purgeChanges(ctx context.Context) error {
	return m.DB.PurgeChangedFields(ctx, m.Settings.Audit.ChangedFields)
}

// checkHolds compares the rights of the caller with those of a user. The module rbac is built later.
func (m *Modules) checkHolds(ctx context.Context, q store.Querier, userID string) error {
	return m.RBAC.CheckHolds(ctx, q, userID)
}

// callerChanged ends what outlives a request of a user, on every node. Their tokens as a service account come first: streams ask for
// them. An empty id stands for all users. A connection to the database that is lost and made again during [New] calls it, too: then
// nothing is remembered yet.
func (m *Modules) callerChanged(userID string) {
	if !m.built.Load() {
		return
	}
	m.Services.Forget(userID)
	m.Notifications.SessionsChanged(userID)
	m.Changes.SessionsChanged(userID)
	m.Requests.SessionsChanged(userID)
}
