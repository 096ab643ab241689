package webhooks

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// halt pauses or disables an active webhook and notifies its owner.
func (s *Service) halt(ctx context.Context, tx *store.Tx, id, status, reason string) error {
	before, err := table.GetUnchecked(ctx, tx, id)
	if errors.Is(err, apierr.WebhookNotFound) || err == nil && before.Status != active {
		return nil
	}
	if err != nil {
		return err
	}
	after := before
	after.Status, after.Reason = status, reason
	if err := writeWebhook(ctx, tx, before, after); err != nil {
		return err
	}
	if after, err = table.GetUnchecked(ctx, tx, id); err != nil {
		return err
	}
	table.Audit(ctx, tx, actionPause, id, before, after)
	people, err := s.responsible(ctx, tx, before)
	if err != nil {
		return err
	}
	kind := event.WebhookPaused
	if status == disabled {
		kind = event.WebhookDisabled
	}
	return s.notifier.Notify(ctx, tx, event.Event{Kind: kind, Type: access.Webhooks, RecordID: id, Recipients: people,
		Args: map[string]any{"Host": hostOf(before.URL), "Days": int(s.PauseAfter / day)}})
}

// responsible returns the people who are notified about a webhook: its owner and its creator, and without either of them the
// administrators.
func (s *Service) responsible(ctx context.Context, tx *store.Tx, w Webhook) ([]string, error) {
	candidates := slices.Compact([]string{w.AccountID, w.CreatedBy})
	people, err := s.accounts.ActivePeople(ctx, tx, candidates...)
	if err != nil {
		return nil, err
	}
	candidates = slices.DeleteFunc(candidates, func(id string) bool { return !people[id] })
	if len(candidates) > 0 {
		return candidates, nil
	}
	return s.accounts.Administrators(ctx, tx)
}

// hostOf returns the host of an address. The rest may contain what only owners should read.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
