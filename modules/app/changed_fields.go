package app

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

// changedFields lists the records whose changes the audit trail keeps with their values. The values are members of what the API
// answers, which holds no password, token or key. Not listed are types without a change of values: sessions, passwords, factors,
// messages, documents and the history of verifications, which is kept with the customer.
var changedFields = map[string]store.ChangeRule{
	access.Customers.Name:   {Omit: []string{"updated_at", "erased_at"}},
	access.Personas.Name:    {Omit: []string{"modified_at", "modified_by", "erased_at"}},
	access.Payers.Name:      {Omit: []string{"modified_at", "modified_by", "erased_at"}},
	access.Tasks.Name:       {Omit: []string{"metadata.logs", "erased_at"}, Forget: true},
	access.Chats.Name:       {},
	access.Users.Name:       {Omit: []string{"modified_at", "roles", "last_login_at"}},
	"user_roles":            {},
	"invitations":           {},
	access.Credentials.Name: {Forget: true},
	access.Identities.Name:  {Omit: []string{"last_used_at"}, Forget: true},
	access.Services.Name:    {Omit: []string{"modified_at", "modified_by", "name", "status", "roles"}},
	access.Webhooks.Name:    {Omit: []string{"modified_at", "modified_by", "failing_since", "delivered_at", "former_secret_until"}},
	access.APIKeys.Name:     {Omit: []string{"last_used_at"}},
	access.Roles.Name:       {Omit: []string{"modified_at", "modified_by"}},
	access.RateLimits.Name:  {Omit: []string{"modified_at", "modified_by"}},
	"legal_holds":           {Forget: true},
}

// keepChanges makes the store keep changed fields, unless the setting is 0.
func (m *Modules) keepChanges() {
	if m.Settings.Audit.ChangedFields > 0 {
		m.DB.KeepChanges(store.Changes{Rules: changedFields, Erase: personal.Action})
	}
}

// purgeChanges deletes changed fields that are older than the setting; 0 deletes all.
func (m *Modules) purgeChanges(ctx context.Context) error {
	return m.DB.PurgeChangedFields(ctx, m.Settings.Audit.ChangedFields)
}
