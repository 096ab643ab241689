package servertest

import (
	"context"
	"net/url"

	"kontor/modules/kit/list"
	"kontor/modules/reach/notifications"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Messages returns the texts of the e-mails and SMS in the local outbox to an address of a user, the oldest first, as an administrator
// reads them who has just signed in. There must be no more than 100.
func (s *Server) Messages(userID, to string) []string {
	s.t.Helper()
	query, err := list.Parse(url.Values{"search.user_id": {userID}, "search.to": {to}, "sort": {"created_at"}, "limit": {"100"}})
	if err != nil {
		s.t.Fatal(err)
	}
	now := s.DB.Clock().Now()
	caller := access.Caller{UserID: store.NilID, Roles: []string{access.Administrator}, SignedIn: access.Authentication{At: now}}.WithPolicy(
		access.NewPolicy(access.PolicyData{Types: map[string]map[string]access.Permission{access.Administrator: {access.Deliveries.Name: access.ReadAll}}}))
	ctx := endpoint.With(access.With(context.Background(), caller), &endpoint.Info{Caller: caller, Now: now})
	page, err := s.Notifications.ListDeliveries(ctx, notifications.DeliveriesInput{Query: query})
	if err != nil {
		s.t.Fatal(err)
	}
	texts := make([]string, len(page.Data.Rows))
	for i, d := range page.Data.Rows {
		texts[i] = d.Text
	}
	return texts
}
