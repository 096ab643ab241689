package app

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/licences"
	"kontor/modules/bank/chats"
	"kontor/modules/bank/customers"
	"kontor/modules/bank/files"
	"kontor/modules/bank/imports"
	"kontor/modules/bank/invoices/qrbill"
	"kontor/modules/developer/playground/seed"
	"kontor/modules/identity/auth"
	"kontor/modules/identity/authzen"
	"kontor/modules/identity/directory"
	"kontor/modules/identity/oidc"
	"kontor/modules/identity/serviceaccounts"
	"kontor/modules/kit/attachment"
	"kontor/modules/kit/change"
	"kontor/modules/kit/find"
	"kontor/modules/kit/hit"
	"kontor/modules/reach/changes"
	"kontor/modules/reach/deliveries"
	"kontor/modules/reach/notifications"
	"kontor/modules/reach/search"
	"kontor/modules/reach/webhooks"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// newDeliveries builds the module deliveries with the gateways of the settings.
func newDeliveries(m *Modules) (*deliveries.Service, error) {
	s, now := m.Settings.Notifications, m.DB.Clock().Now
	o := deliveries.Options{MaxAttempts: s.Queue.MaxAttempts, BasePause: s.Queue.Base, MaxPause: s.Queue.Max, Log: m.Log, CheckHolds: m.checkHolds}
	if address := string(s.Email.SMTPURL); address != "" {
		gateway, err := deliveries.NewSMTP(address, s.Email.From, now, nil)
		if err != nil {
			return nil, err
		}
		o.Email = gateway
	}
	if address := string(s.SMS.WebhookURL); address != "" {
		o.SMS = deliveries.NewWebhook(address, string(s.SMS.Token), now)
	}
	return deliveries.New(m.DB, o), nil
}

func newNotifications(m *Modules) *notifications.Service {
	s := m.Settings.Notifications
	return notifications.New(m.DB, m.Texts, m.Deliveries, notifications.Options{
		BaseURL: m.Settings.Server.BaseURL, BankName: m.Settings.Bank.Name, Heartbeat: s.SSE.Heartbeat, ConnectionsPerUser: s.SSE.ConnectionsPerUser,
		NoTrigger: !m.Settings.TriggerEnabled(), Policy: m.Policy, TermsDue: m.termsDue(&m.held.notifications), Log: m.Log,
	})
}

// newFiles builds the module of evidence files.
func newFiles(m *Modules) *files.Service {
	holders := map[attachment.Kind]attachment.Holder{attachment.Document: m.Customers, attachment.Message: m.Chats, attachment.Task: m.Tasks}
	o := m.Settings.Files
	return files.New(m.DB, holders, files.Options{MaxBytes: o.MaxBytes, Quota: o.Quota, Clamd: o.Clamd, Renderer: renderer{m.bills}, Texts: m.Texts, Log: m.Log})
}

// renderer adapts the reader of bills for the module files: both use the same worker processes.
type renderer struct{ *qrbill.Reader }

const retryPreview = 2 * time.Second

// Render renders a page of a file.
func (r renderer) Render(ctx context.Context, caller string, load func() ([]byte, error), page, width int) (files.Preview, error) {
	picture, err := r.Preview(ctx, load, qrbill.PreviewOptions{Page: page, Width: width, Caller: caller})
	if err == nil {
		return files.Preview{JPEG: picture.JPEG, Pages: picture.Pages}, nil
	}
	problem, unreadable := errors.AsType[*qrbill.Error](err)
	switch {
	case errors.Is(err, qrbill.ErrBusy):
		return files.Preview{}, &apierr.Error{Kind: apierr.Unavailable, Cause: err, Retry: retryPreview}
	case unreadable && problem.Reason == qrbill.PageOutOfRange:
		return files.Preview{}, apierr.PageNotFound
	case unreadable:
		return files.Preview{}, apierr.PreviewImpossible.Wrap(err)
	}
	return files.Preview{}, err
}

// newImports builds the imports of customers.
func newImports(m *Modules) *imports.Service {
	o := m.Settings.Imports
	return imports.New(m.DB, importedCustomers{m.Customers}, m.Users, imports.Options{
		MaxBytes: o.MaxBytes, KeepDays: o.KeepDays, Policy: m.Policy, TermsDue: m.termsDue(&m.held.imports), Texts: m.Texts, Log: m.Log,
	})
}

// importedCustomers adapts the module customers for imports.
type importedCustomers struct{ *customers.Service }

// Columns returns the columns of a file.
func (c importedCustomers) Columns() map[string]bool { return customers.ImportColumns() }

// Begin prepares the stored customers.
func (c importedCustomers) Begin(ctx context.Context) error { return c.PrepareImports(ctx) }

// Prepare checks a row.
func (c importedCustomers) Prepare(ctx context.Context, cells map[string]string) (imports.Row, error) {
	row, err := c.PrepareImport(ctx, cells)
	if err != nil {
		return nil, err
	}
	return row, nil
}

// MayImport reports whether the caller may import customers one by one as well.
func (c importedCustomers) MayImport(caller *access.Caller, updates bool) bool {
	return mayCall(caller, "POST /v1/customers/import", "customers.import") && mayCall(caller, "POST /v1/customers", "customers.create") &&
		caller.May(access.Customers, access.Create) && (!updates || mayCall(caller, "PUT /v1/customers/{id}", "customers.update"))
}

// mayCall reports whether the caller has the grant on an endpoint, within the scopes of their token.
func mayCall(caller *access.Caller, key, name string) bool {
	return caller.MayCall(key) && caller.InScope(name)
}

// licencesPath is the address of the licences of the software in the executable, for all callers.
const licencesPath = "/licences"

// allLicences is the text at licencesPath, which is put together when it is first asked for.
var allLicences = sync.OnceValue(func() []byte { return []byte(string(licences.Kontor) + "\n" + licences.ThirdParty) })

// serveLicences answers a GET or HEAD request for the licences. Otherwise it does nothing and returns false.
func serveLicences(c *fiber.Ctx, path string) bool {
	if path != licencesPath {
		return false
	}
	c.Set(fiber.HeaderContentType, "text/plain; charset=utf-8")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderCacheControl, "public, max-age=3600")
	c.Status(http.StatusOK).Response().SetBodyRaw(allLicences())
	return true
}

// newAuthZEN builds the interface by which other programs ask for decisions.
func newAuthZEN(m *Modules) *authzen.Service {
	return authzen.New(m.RBAC, m.users(), authzen.Options{BaseURL: m.Settings.BaseURLFor(m.Settings.Server.Listen), Policy: m.Policy})
}

// newSearch builds the search over the records of all types.
func newSearch(m *Modules) *search.Service {
	types := []search.Type{{Of: access.Customers, Module: m.Customers}}
	for _, module := range offering[declared](m) {
		types = append(types, search.Type{Of: module.RecordType(), Module: module})
	}
	return search.New(m.DB, m.Log, append(types,
		search.Type{Of: access.Tasks, Module: m.Tasks},
		search.Type{Of: access.Chats, Module: m.Chats},
		search.Type{Of: access.Users, Module: m.Users}))
}

// declared is a module whose records have a declaration, see package recordtype.
type declared interface {
	access.Records
	find.Module
	ReadRecord(ctx context.Context, id string) (any, error)
}

// newWebhooks builds the delivery of events.
func newWebhooks(m *Modules) *webhooks.Service {
	o := m.Settings.Webhooks
	return webhooks.New(m.DB, feed{m.Changes}, m.users(), m.Notifications, webhooks.Options{
		AllowedNetworks: o.AllowedNetworks, Timeout: o.Timeout, PauseAfter: o.PauseAfter, Keep: o.Keep,
		Policy: m.Policy, TermsDue: m.termsDue(&m.held.webhooks), Texts: m.Texts, Log: m.Log,
	})
}

// feed adapts the change feed for the module webhooks.
type feed struct{ *changes.Service }

// After returns events with the position to continue with.
func (f feed) After(ctx context.Context, after change.Position, types []string, limit int) ([]change.Event, change.Position, error) {
	b, err := f.Service.After(ctx, changes.Query{After: after, Types: types, Limit: limit})
	return b.Events, b.Last, err
}

// ValidPattern reports whether a text is a type of events or a pattern.
func (f feed) ValidPattern(text string) bool { return changes.ValidPattern(text) }

// MayFollow reports whether a caller may read the feed.
func (f feed) MayFollow(caller *access.Caller) bool { return caller.MayCall(changes.Endpoint) }

// newChanges builds the change feed.
func newChanges(m *Modules) *changes.Service {
	s := changes.New(m.DB, m.Auth, readable{m}, changes.Options{
		Retention: m.Settings.Events.Retention, Heartbeat: m.Settings.Notifications.SSE.Heartbeat,
		ConnectionsPerUser: m.Settings.Notifications.SSE.ConnectionsPerUser, Policy: m.Policy, TermsDue: m.termsDue(&m.held.changes), Log: m.Log,
	})
	s.SetParents("chat_messages", chats.OfMessages)
	s.SetParents("service_tokens", serviceaccounts.AccountsOf)
	s.SetParents("kyc_files", files.Parents)
	s.SetParents("chat_files", files.Parents)
	s.SetParents("task_files", files.RecordsOf)
	s.SetReader(access.Customers, func(ctx context.Context, id string) (any, error) {
		return m.Customers.Get(ctx, customers.OneInput{ID: id})
	})
	for _, module := range offering[declared](m) {
		s.SetReader(module.RecordType(), module.ReadRecord)
	}
	s.SetReader(access.Chats, func(ctx context.Context, id string) (any, error) { return m.Chats.Get(ctx, chats.OneInput{ID: id}) })
	s.SetReader(access.Tasks, func(ctx context.Context, id string) (any, error) { return m.Tasks.Find(ctx, id) })
	s.SetReader(access.Users, func(ctx context.Context, id string) (any, error) { return m.Users.Get(ctx, id) })
	s.SetReader(access.Services, func(ctx context.Context, id string) (any, error) { return m.Services.Get(ctx, id) })
	s.SetReader(hit.Type, func(ctx context.Context, id string) (any, error) { return m.Screening.ReadHit(ctx, id) })
	s.SetDecider(hit.Type, func(ctx context.Context, ids []string) (map[string]bool, error) {
		return m.Screening.Readable(ctx, ids)
	})
	return s
}

// readable answers with the permission check.
type readable struct{ modules *Modules }

// Readable returns which of the records the caller may read.
func (r readable) Readable(ctx context.Context, caller *access.Caller, t access.RecordType, ids []string) (map[string]bool, error) {
	checks := make([]access.Check, len(ids))
	for i, id := range ids {
		checks[i] = access.Check{RecType: t.Name, Permission: access.Read.String(), RecID: id}
	}
	decisions, err := r.modules.RBAC.Decide(ctx, caller, checks)
	if err != nil {
		return nil, err
	}
	allowed := make(map[string]bool, len(ids))
	for i, id := range ids {
		allowed[id] = decisions[i].Allowed
	}
	return allowed, nil
}

// newSeed returns what fills a sandbox, or nil outside of one.
func (m *Modules) newSeed() *seed.Service {
	if !m.InSandbox() {
		return nil
	}
	return seed.New(seed.Options{
		DB: m.DB, Clock: m.Sandbox.Clock, Texts: m.Texts, Log: m.Log, Front: m.front, People: m.users(), Sessions: m.Auth,
		Busy: m.Playground.Busy(), Gate: &m.jobGate, Advance: m.Playground.AdvanceTo, Settle: m.Webhooks.Settle, Keep: m.Sandbox.Keep,
	})
}

// front returns a server for the steps of seed files: without limits of requests.
func (m *Modules) front() (seed.Front, error) {
	s := m.Settings
	s.RateLimits.Enabled = false
	return m.server(s)
}

// newOIDC builds the sign-in with the operator's provider.
func newOIDC(m *Modules) *oidc.Service {
	s := m.Settings.Auth.OIDC
	o := oidc.Options{
		Issuer: s.Issuer, ClientID: s.ClientID, ClientSecret: string(s.ClientSecret), Name: s.Name, Scopes: s.Scopes,
		RolesClaim: s.RolesClaim, CreateUsers: s.CreateUsers,
		BaseURL: m.Settings.BaseURLFor(m.Settings.Server.Listen), Timeout: providerTime(m.Settings.Server.RequestTime),
		Policy: m.Policy, Texts: m.Texts, Log: m.Log,
		SignedIn: []endpoint.Answer{
			{Status: http.StatusOK, Body: auth.Tokens{}, Says: "The sign-in is complete."},
			{Status: http.StatusAccepted, Body: auth.NextStep{}, Says: "The sign-in needs a second factor."},
		},
	}
	for _, r := range s.RoleMap {
		o.RoleMap = append(o.RoleMap, oidc.MappedRole(r))
	}
	return oidc.New(m.DB, federatedSessions{m.Auth}, m.users(), m.Notifications, o)
}

// providerTime returns the time for the provider within a request, so that the rest of it is enough for an answer.
func providerTime(request time.Duration) time.Duration { return request * 4 / 5 }

// federatedSessions adapts sign-in for the module oidc.
type federatedSessions struct{ *auth.Service }

// NextStep returns a further step of the sign-in, or nil.
func (f federatedSessions) NextStep(ctx context.Context, userID string, methods []string, at store.Time) (any, error) {
	step, err := f.Service.NextStep(ctx, userID, methods, at)
	if step == nil {
		return nil, err
	}
	return step, err
}

// OpenFederatedSession opens a session.
func (f federatedSessions) OpenFederatedSession(ctx context.Context, tx *store.Tx, userID string, methods []string, at store.Time) (any, error) {
	return f.Service.OpenFederatedSession(ctx, tx, userID, methods, at)
}

// messages adapts the notifications for the modules directory and chats.
type messages struct{ *notifications.Service }

// MarkRead marks a user's notifications about a record as read.
func (s messages) MarkRead(ctx context.Context, tx *store.Tx, userID string, t access.RecordType, recordID string) error {
	_, err := s.MarkRecordRead(ctx, tx, userID, t.Name, recordID)
	return err
}

// users adapts the directory for other modules. One type does so for all of them: each would have all methods of the directory.
type users struct {
	*directory.Service
	db       *store.DB
	services *serviceaccounts.Service
}

func (m *Modules) users() users { return users{m.Users, m.DB, m.Services} }

// Active reports which of the users are active people: only people take part in chats.
func (u users) Active(ctx context.Context, q store.Querier, ids ...string) (map[string]bool, error) {
	return u.ActivePeople(ctx, q, ids...)
}

// CheckMayActAs checks that the caller may act as a service account, for the module webhooks. The service accounts are built before it.
func (u users) CheckMayActAs(ctx context.Context, tx *store.Tx, id string) error {
	return u.services.CheckMayActAs(ctx, tx, id)
}

// FindLogin returns the id of a user, for seed files. It returns store.ErrNotFound.
func (u users) FindLogin(ctx context.Context, login string) (string, error) {
	user, err := u.Find(ctx, u.db, login)
	if errors.Is(err, apierr.UserNotFound) {
		return "", store.ErrNotFound
	}
	return user.ID, err
}
