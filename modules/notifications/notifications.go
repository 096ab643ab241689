// Package notifications brings what happened to the people whom it concerns.
//
// What leaves Kontor, by e-mail or SMS, is a [Delivery]: a row of the outbox, written in the transaction of the change
// that it tells of, so that neither is there without the other. Without a gateway for a channel the row itself is the
// delivery: it counts as sent at once, and administrators read the text in the list of deliveries.
package notifications

import (
	"context"

	"kontor/modules/list"
	"kontor/server/access"
	"kontor/server/fault"
	"kontor/store"
)

// Service keeps notifications and their deliveries.
type Service struct {
	db    *store.DB
	texts Texts
	words words
	order order

	baseURL string // of the console, for links in mails
}

// New makes the service.
func New(db *store.DB, texts Texts) *Service {
	return &Service{db: db, texts: texts, words: words{texts}}
}

// listDeliveries lists the outbox for callers who may read all of it. It returns fault.NoAccess.
func (s *Service) listDeliveries(ctx context.Context, in deliveriesInput) (list.Page[Delivery], error) {
	if !access.From(ctx).May(access.Deliveries, access.ReadAll) {
		return list.Page[Delivery]{}, fault.NoAccess
	}
	return deliveryList.Page(ctx, s.db, in.Query)
}
