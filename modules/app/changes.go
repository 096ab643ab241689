package app

import (
	"context"

	"kontor/modules/bank/chats"
	"kontor/modules/bank/customers"
	"kontor/modules/bank/files"
	"kontor/modules/identity/rbac"
	"kontor/modules/identity/serviceaccounts"
	"kontor/modules/reach/changes"
	"kontor/server/access"
)

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
	return s
}

// readable answers with the permission check.
type readable struct{ modules *Modules }

// Readable returns which of the records the caller may read.
func (r readable) Readable(ctx context.Context, caller *access.Caller, t access.RecordType, ids []string) (map[string]bool, error) {
	checks := make([]rbac.Check, len(ids))
	for i, id := range ids {
		checks[i] = rbac.Check{RecType: t.Name, Permission: access.Read.String(), RecID: id}
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
