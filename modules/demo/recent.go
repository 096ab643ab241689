package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// inbox is a page of a user's notifications.
type inbox struct {
	Data []record `json:"data"`
	More bool     `json:"has_more"`
}

// readNotifications marks all notifications of a user as read.
func (b *builder) readNotifications(ctx context.Context, p *person) error {
	for {
		var page inbox
		if err := b.api.get(ctx, p, "/v1/notifications?limit=100&search.read=false&search.user_id="+p.id, &page); err != nil {
			return err
		}
		for _, notification := range page.Data {
			if err := b.api.do(ctx, p, http.MethodPatch, "/v1/notifications/"+notification.ID+"/read", object{"read": true}, nil); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

// createRecentEvents marks all notifications as read, and creates the events of today, which stay unread.
func (b *builder) createRecentEvents(ctx context.Context) error {
	b.setTimeAgo(9 * time.Hour)
	if err := b.Customers.RunExpiry(ctx); err != nil {
		return err
	}
	for _, p := range append([]*person{b.admin, b.customer}, b.staff...) {
		if err := b.readNotifications(ctx, p); err != nil {
			return err
		}
	}
	s, last := b.staff, len(b.customers)-1
	team, onboarding, support, access := &b.threads[0], &b.threads[1], &b.threads[4], &b.threads[5]
	for _, event := range []struct {
		ago time.Duration
		do  func() error
	}{
		{405 * time.Minute, func() error { return b.createCustomer(ctx, days, b.randomIdentity(), s[0]) }},
		{350 * time.Minute, func() error {
			return b.createTask(ctx, s[1], []*person{b.admin, s[0]}, pick(b, b.customers), taskTemplate{"approve", "Approve the new fee schedule", "Valid from January; the committee has agreed."}, true, untouched)
		}},
		{290 * time.Minute, func() error {
			return b.sendAndMarkRead(ctx, team, []line{{3, "Good morning. The quarterly figures go out at noon, please check your verifications."}, {1, "Les miennes sont à jour."}, {0, "Meine auch, zwei sind noch in Prüfung."}})
		}},
		{235 * time.Minute, func() error { return b.decideNewestPending(ctx, last, "in_review") }},
		{180 * time.Minute, func() error {
			return b.sendAndMarkRead(ctx, onboarding, []line{{1, "The translation of the Ticino deed has arrived."}, {0, "Perfect. Can you attach it and move the review on?"}, {1, "Done. It waits for your approval now."}})
		}},
		{142 * time.Minute, func() error {
			return b.createTask(ctx, s[2], []*person{s[0], b.admin}, pick(b, b.customers), taskTemplate{"sign", "Countersign the Ticino deed", "The certified translation is attached to the verification."}, false, begun)
		}},
		{118 * time.Minute, func() error {
			return b.createTask(ctx, s[0], []*person{b.customer, s[0]}, b.ownCustomer(), taskTemplate{"sign", "Sign the change of address", "Sign once at the branch or in the app; the new proof of address is still needed."}, false, untouched)
		}},
		{95 * time.Minute, func() error { return b.createCustomer(ctx, days, b.randomIdentity(), b.admin) }},
		{64 * time.Minute, func() error {
			return b.sendMessages(ctx, access, []line{{0, "Lena, an API key for the new website is ready. Who should get it?"}, {1, "Tom takes it over. He is back at two."}})
		}},
		{41 * time.Minute, func() error {
			return b.createTask(ctx, s[3], []*person{s[0], b.admin}, pick(b, b.customers), taskTemplate{"approve", "Release the first payment of the foundation", "Above the usual limit; two approvals are needed."}, true, halfway)
		}},
		{22 * time.Minute, func() error {
			return b.sendMessages(ctx, onboarding, []line{{2, "One more for today: a company from Zug, complete."}, {2, "I have put it at the top of the list."}})
		}},
		{9 * time.Minute, func() error {
			return b.sendMessages(ctx, support, []line{{0, "Guten Tag, die Anmeldebestätigung ist da. Ich habe sie eben hochgeladen."}})
		}},
	} {
		b.setTimeAgo(event.ago)
		if err := event.do(); err != nil {
			return fmt.Errorf("%s ago: %w", event.ago, err)
		}
	}
	return nil
}

// ownCustomer returns the customer record of the user Nina Keller.
func (b *builder) ownCustomer() customer {
	for _, c := range b.customers {
		if c.advisor == b.customer {
			return c
		}
	}
	return b.customers[0]
}

func (b *builder) sendAndMarkRead(ctx context.Context, t *thread, lines []line) error {
	if err := b.sendMessages(ctx, t, lines); err != nil {
		return err
	}
	return b.markRead(ctx, t)
}

// decideNewestPending sets the status of the newest pending verification among the customers up to an index.
func (b *builder) decideNewestPending(ctx context.Context, from int, status string) error {
	for i := from; i >= 0; i-- {
		c := &b.customers[i]
		var found struct {
			Status string `json:"kyc_status"`
		}
		if err := b.api.get(ctx, b.staff[0], "/v1/customers/"+c.id, &found); err != nil {
			return err
		}
		if found.Status == "pending" && c.advisor != b.customer {
			return b.decide(ctx, c, status, "")
		}
	}
	return nil
}
