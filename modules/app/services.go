package app

import (
	"context"

	"kontor/modules/identity/directory"
	"kontor/modules/identity/serviceaccounts"
	"kontor/store"
)

// newServices builds the service accounts.
func newServices(m *Modules) (*serviceaccounts.Service, error) {
	return serviceaccounts.New(m.DB, machines{m.Users}, m.Auth, m.Notifications,
		serviceaccounts.Options{CheckHolds: m.checkHolds, Texts: m.Texts, Log: m.Log})
}

// checkHolds compares the rights of the caller with those of a user. The module rbac is built later.
func (m *Modules) checkHolds(ctx context.Context, q store.Querier, userID string) error {
	return m.RBAC.CheckHolds(ctx, q, userID)
}

// callerChanged ends what outlives a request of a user, on every node. Their tokens as a service account come first: streams ask for
// them. An empty id stands for all users.
func (m *Modules) callerChanged(userID string) {
	m.Services.Forget(userID)
	m.Notifications.SessionsChanged(userID)
	m.Changes.SessionsChanged(userID)
	m.Requests.SessionsChanged(userID)
}

// machines adapts directory for the module serviceaccounts.
type machines struct{ *directory.Service }

// Create stores the user of a service account.
func (u machines) Create(ctx context.Context, tx *store.Tx, name string, roles []string) (string, error) {
	return u.CreateMachine(ctx, tx, name, roles)
}

// Change changes the user of a service account.
func (u machines) Change(ctx context.Context, tx *store.Tx, id string, name, status *string) error {
	return u.ChangeMachine(ctx, tx, id, directory.MachineChange{Name: name, Status: status})
}

// people adapts directory for the module chats: only people take part in chats.
type people struct{ *directory.Service }

// Active reports which of the users are active people.
func (p people) Active(ctx context.Context, q store.Querier, ids ...string) (map[string]bool, error) {
	return p.ActivePeople(ctx, q, ids...)
}
