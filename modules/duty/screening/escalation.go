package screening

import (
	"context"

	"kontor/modules/kit/event"
	"kontor/modules/kit/hit"
	"kontor/server/access"
	"kontor/store"
)

// A hit that all reviewers are excluded from would be invisible to everyone. Administrators are notified at once.

// Notifier notifies users. The module notifications implements it.
type Notifier interface {
	Notify(ctx context.Context, tx *store.Tx, e event.Event) error
}

// selectReviewers selects the active people who may update all customers, and whether they are administrators. $1 is the role.
const selectReviewers = `
	SELECT p.id, EXISTS (SELECT 1 FROM held_roles a WHERE a.user_id = p.id AND a.role_id = $1)
	FROM people p
	WHERE p.status = 'active' AND p.kind = 'person' AND p.id IN (
		SELECT h.user_id FROM held_roles h
		WHERE h.role_id = $1 OR h.role_id IN (
			SELECT g.principal_id FROM permissions g WHERE g.rec_type = 'customers' AND g.rec_id = '' AND g.permission = 'update')
		UNION
		SELECT g.principal_id FROM permissions g WHERE g.rec_type = 'customers' AND g.rec_id = '' AND g.permission = 'update')
	ORDER BY p.id LIMIT 10000`

type reviewer struct {
	id            string
	administrator bool
}

func scanReviewer(row store.Scanner) (r reviewer, err error) {
	err = row.Scan(&r.id, &r.administrator)
	return r, err
}

// escalation returns why a hit must be escalated, and the administrators who may decide; empty for a hit that a reviewer may decide about.
// If all reviewers are administrators, a single administrator who may decide is enough.
func (s *Service) escalation(ctx context.Context, q store.Querier, h hit.Hit) (why string, administrators []string, err error) {
	reviewers, err := store.All(ctx, q, scanReviewer, selectReviewers, access.Administrator)
	if err != nil {
		return "", nil, err
	}
	others := false
	for _, r := range reviewers {
		others = others || !r.administrator
	}
	for _, r := range reviewers {
		subject, err := s.Reviews.IsSubject(ctx, q, h, r.id)
		switch {
		case err != nil:
			return "", nil, err
		case subject:
		case !r.administrator || !others:
			return "", nil, nil
		default:
			administrators = append(administrators, r.id)
		}
	}
	if len(administrators) == 0 {
		return hit.Everyone, nil, nil
	}
	return hit.AllReviewers, administrators, nil
}

// lost returns the hits that wait for a decision, and whose escalation is not the one that they need.
func (s *Service) lost(ctx context.Context, q store.Querier, hits []storedHit) (all []storedHit, err error) {
	for _, h := range hits {
		if h.Status != hit.Open && h.Status != hit.Pending {
			continue
		}
		why, _, err := s.escalation(ctx, q, h.Hit)
		if err != nil {
			return nil, err
		}
		if why != h.Escalation {
			all = append(all, h)
		}
	}
	return all, nil
}

// escalateOf escalates the hits of a record that no reviewer may decide about.
func (s *Service) escalateOf(ctx context.Context, tx *store.Tx, of source, id string) error {
	hits, err := hitsOf(ctx, tx, of, []string{id})
	if err != nil {
		return err
	}
	lost, err := s.lost(ctx, tx, hits[id])
	for _, h := range lost {
		if err == nil {
			err = s.escalate(ctx, tx, h)
		}
	}
	return err
}

// escalate stores why a hit is escalated, or that it is not any more, and notifies the administrators who may decide about it.
func (s *Service) escalate(ctx context.Context, tx *store.Tx, h storedHit) error {
	why, administrators, err := s.escalation(ctx, tx, h.Hit)
	if err != nil {
		return err
	}
	after := h
	after.Escalation = why
	action := hitEscalated
	if why == "" {
		action = hitChanged
	}
	if err := writeHit(ctx, tx, &h, after, action, ""); err != nil {
		return err
	}
	if why == hit.Everyone {
		s.Log.Error("a hit of screening is about all people who may decide about it: appoint another reviewer", "hit", h.ID)
	}
	return s.Notifier.Notify(ctx, tx, event.Event{Kind: event.ScreeningEscalated, Type: hit.Type, RecordID: h.ID, Recipients: administrators})
}

const selectWaiting = `SELECT ` + hitColumns + ` FROM screening_hits WHERE status IN ('open', 'pending') AND id > $1 ORDER BY id LIMIT 100`

// escalateAll escalates the hits that have lost their last reviewer because reviewers have left.
func (s *Service) escalateAll(ctx context.Context) error {
	for last := ""; ; {
		waiting, err := store.All(ctx, s.db, scanHit, selectWaiting, last)
		if err != nil || len(waiting) == 0 {
			return err
		}
		last = waiting[len(waiting)-1].ID
		lost, err := s.lost(ctx, s.db, waiting)
		if err != nil {
			return err
		}
		for _, h := range lost {
			err := s.db.InTx(ctx, func(tx *store.Tx) error {
				now, err := scanHit(tx.QueryRow(ctx, selectHit, h.ID))
				if err != nil || now.Version != h.Version {
					return store.Optional(err)
				}
				return s.escalate(ctx, tx, now)
			})
			if err != nil {
				return err
			}
		}
	}
}
