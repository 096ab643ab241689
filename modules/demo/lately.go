package demo

import (
	"fmt"
	"net/http"
	"time"
)

// inbox is a page of somebody's notifications.
type inbox struct {
	Data []idOf `json:"data"`
	More bool   `json:"has_more"`
}

// clearInbox lets somebody read what he was told so far.
func (b *bank) clearInbox(p *person) error {
	for {
		var page inbox
		if err := b.api.get(p, "/v1/notifications?limit=100&search.read=false&search.user_id="+p.id, &page); err != nil {
			return err
		}
		for _, one := range page.Data {
			if err := b.api.do(p, http.MethodPatch, "/v1/notifications/"+one.ID+"/read", object{"read": true}, nil); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

// lately is what happened since this morning: everybody has read what came before, and a little is new.
func (b *bank) lately() error {
	b.ago(9 * time.Hour)
	if err := b.Customers.RunExpiry(b.ctx); err != nil {
		return err
	}
	for _, p := range append([]*person{b.admin, b.customer}, b.staff...) {
		if err := b.clearInbox(p); err != nil {
			return err
		}
	}
	s, last := b.staff, len(b.customers)-1
	team, onboarding, support, access := &b.threads[0], &b.threads[1], &b.threads[4], &b.threads[5]
	for _, event := range []struct {
		ago time.Duration
		do  func() error
	}{
		{405 * time.Minute, func() error { return b.meetCustomer(days, b.invent(), s[0]) }},
		{350 * time.Minute, func() error {
			return b.give(s[1], []*person{b.admin, s[0]}, errand{"approve", "Approve the new fee schedule", "Valid from January; the committee has agreed."}, true, untouched)
		}},
		{290 * time.Minute, func() error {
			return b.sayAndRead(team, []line{{3, "Good morning. The quarterly figures go out at noon, please check your verifications."}, {1, "Les miennes sont à jour."}, {0, "Meine auch, zwei sind noch in Prüfung."}})
		}},
		{235 * time.Minute, func() error { return b.advance(last, "in_review") }},
		{180 * time.Minute, func() error {
			return b.sayAndRead(onboarding, []line{{1, "The translation of the Ticino deed has arrived."}, {0, "Perfect. Can you attach it and move the review on?"}, {1, "Done. It waits for your approval now."}})
		}},
		{142 * time.Minute, func() error {
			return b.give(s[2], []*person{s[0], b.admin}, errand{"sign", "Countersign the Ticino deed", "The certified translation is attached to the verification."}, false, begun)
		}},
		{95 * time.Minute, func() error { return b.meetCustomer(days, b.invent(), b.admin) }},
		{64 * time.Minute, func() error {
			return b.say(access, []line{{0, "Lena, an API key for the new website is ready. Who should get it?"}, {1, "Tom takes it over. He is back at two."}})
		}},
		{41 * time.Minute, func() error {
			return b.give(s[3], []*person{s[0], b.admin}, errand{"approve", "Release the first payment of the foundation", "Above the usual limit; two approvals are needed."}, true, halfway)
		}},
		{22 * time.Minute, func() error {
			return b.say(onboarding, []line{{2, "One more for today: a company from Zug, complete."}, {2, "I have put it at the top of the list."}})
		}},
		{9 * time.Minute, func() error {
			return b.say(support, []line{{0, "Guten Tag, die Anmeldebestätigung ist da. Ich habe sie eben hochgeladen."}})
		}},
	} {
		b.ago(event.ago)
		if err := event.do(); err != nil {
			return fmt.Errorf("%s ago: %w", event.ago, err)
		}
	}
	return nil
}

func (b *bank) sayAndRead(t *thread, lines []line) error {
	if err := b.say(t, lines); err != nil {
		return err
	}
	return b.read(t)
}

// advance takes the newest customer before one in a list whose verification waits a step further.
func (b *bank) advance(from int, status string) error {
	for i := from; i >= 0; i-- {
		c := &b.customers[i]
		var found struct {
			Status string `json:"kyc_status"`
		}
		if err := b.api.get(b.staff[0], "/v1/customers/"+c.id, &found); err != nil {
			return err
		}
		if found.Status == "pending" && c.advisor != b.customer {
			return b.decide(c, status, "")
		}
	}
	return nil
}
