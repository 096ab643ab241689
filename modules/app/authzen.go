package app

import (
	"context"

	"kontor/modules/identity/authzen"
	"kontor/modules/identity/directory"
	"kontor/modules/identity/rbac"
	"kontor/server/access"
	"kontor/store"
)

// newAuthZEN builds the interface by which other programs ask for decisions.
func newAuthZEN(m *Modules) *authzen.Service {
	return authzen.New(decisions{m}, subjects{m.Users, m.DB}, authzen.Options{BaseURL: m.Settings.BaseURLFor(m.Settings.Server.Listen), Policy: m.Policy})
}

// decisions adapts rbac for the module authzen. The module rbac is built later.
type decisions struct{ modules *Modules }

// Ask decides questions about one subject.
func (d decisions) Ask(ctx context.Context, asking, subject *access.Caller, questions []authzen.Question) ([]authzen.Answer, error) {
	checks := make([]rbac.Check, len(questions))
	for i, q := range questions {
		checks[i] = rbac.Check(q)
	}
	decided, err := d.modules.RBAC.Ask(ctx, asking, subject, checks)
	answers := make([]authzen.Answer, len(decided))
	for i, one := range decided {
		answers[i] = authzen.Answer(one)
	}
	return answers, err
}

// MayAskAboutOthers reports whether a caller may ask about other subjects.
func (d decisions) MayAskAboutOthers(asking *access.Caller) bool {
	return rbac.MayAskAboutOthers(asking)
}

// Subjects returns the users for whom a question is allowed.
func (d decisions) Subjects(ctx context.Context, asking *access.Caller, kind string, q authzen.Question, after string, limit int) ([]string, error) {
	return d.modules.RBAC.Subjects(ctx, asking, kind, rbac.Check(q), after, limit)
}

// Resources returns the records on which a subject has a permission.
func (d decisions) Resources(ctx context.Context, asking, subject *access.Caller, recType, permission, after string, limit int) ([]string, error) {
	return d.modules.RBAC.Resources(ctx, asking, subject, recType, permission, after, limit)
}

// Actions returns the permissions of a record type.
func (d decisions) Actions(ctx context.Context, recType string) ([]string, error) {
	return d.modules.RBAC.Actions(ctx, recType)
}

// subjects adapts the directory for the module authzen.
type subjects struct {
	*directory.Service
	db *store.DB
}

// FindSubject returns an active user with their roles.
func (s subjects) FindSubject(ctx context.Context, kind, ref string) (*access.Caller, bool, error) {
	return s.Service.FindSubject(ctx, s.db, kind, ref)
}

// UserNames returns the oldest user name of each user.
func (s subjects) UserNames(ctx context.Context, ids []string) (map[string]string, error) {
	return s.Service.UserNames(ctx, s.db, ids)
}
