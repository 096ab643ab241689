package app

import (
	"context"

	"kontor/modules/identity/directory"
	"kontor/modules/identity/serviceaccounts"
	"kontor/modules/kit/change"
	"kontor/modules/reach/changes"
	"kontor/modules/reach/webhooks"
	"kontor/server/access"
	"kontor/store"
)

// newWebhooks builds the delivery of events.
func newWebhooks(m *Modules) *webhooks.Service {
	o := m.Settings.Webhooks
	return webhooks.New(m.DB, feed{m.Changes}, owners{m.Users, m.Services}, m.Notifications, webhooks.Options{
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

// owners adapts the directory and the service accounts for the module webhooks.
type owners struct {
	*directory.Service

	services *serviceaccounts.Service
}

// CheckMayActAs checks that the caller may act as a service account.
func (o owners) CheckMayActAs(ctx context.Context, tx *store.Tx, id string) error {
	return o.services.CheckMayActAs(ctx, tx, id)
}
