package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// maxWebhooks is the number of webhooks of an account.
	maxWebhooks = 20

	actionCreate = "webhooks.create"
	actionUpdate = "webhooks.update"
	actionRotate = "webhooks.rotate_secret"
	actionDelete = "webhooks.delete"
	actionPause  = "webhooks.pause" // by Kontor
)

// Create creates a webhook that receives events from now on. It returns apierr.InvalidInput, apierr.GrantNotHeld and
// apierr.TooManyWebhooks.
func (s *Service) Create(ctx context.Context, in CreateInput) (NewSecret, error) {
	if err := s.checkSettings(&in.URL, in.Types); err != nil {
		return NewSecret{}, err
	}
	id, secret := store.NewID(), newSecret()
	sealed, err := s.db.Seal(webhooksTable, secretColumn, id, secret)
	if err != nil {
		return NewSecret{}, err
	}
	now, err := s.feed.Latest(ctx)
	if err != nil {
		return NewSecret{}, err
	}
	var made NewSecret
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		owner := in.AccountID
		if owner == "" {
			owner = access.From(ctx).UserID
		}
		if err := s.checkOwner(ctx, tx, owner); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, countOf, owner).Scan(&n); err != nil {
			return err
		}
		if n >= maxWebhooks {
			return apierr.TooManyWebhooks.With(apierr.Args{"Max": maxWebhooks})
		}
		if _, err := tx.Exec(ctx, insertWebhook, id, owner, in.URL, in.Description, storedTypes(in.Types), in.IncludeRecord, sealed, tx.Now(), records.Actor(ctx)); err != nil {
			return fmt.Errorf("store a webhook: %w", err)
		}
		if _, err := tx.Exec(ctx, insertProgress, id, now.ID()); err != nil {
			return err
		}
		w, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		table.Audit(ctx, tx, actionCreate, id, nil, w)
		made = NewSecret{w, secretText(secret)}
		tx.Respond(made)
		tx.AfterCommit(s.worker.outbox.WakeUp)
		return nil
	})
	return made, err
}

// checkOwner checks that the caller may have data sent that an account may read. It returns apierr.GrantNotHeld and
// apierr.InvalidInput.
func (s *Service) checkOwner(ctx context.Context, tx *store.Tx, owner string) error {
	if owner == access.From(ctx).UserID {
		return nil
	}
	err := s.accounts.CheckMayActAs(ctx, tx, owner)
	if errors.Is(err, apierr.ServiceAccountNotFound) {
		return apierr.Invalid("account_id", "invalid.unknown_record")
	}
	return err
}

// change changes a webhook that the caller may update. It reports the state before to f, which returns the one after.
func (s *Service) change(ctx context.Context, id, action string, f func(tx *store.Tx, before Webhook) error) (Webhook, error) {
	var after Webhook
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := table.Get(ctx, tx, id, access.Update)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		if err := f(tx, before); err != nil {
			return err
		}
		if after, err = table.GetUnchecked(ctx, tx, id); err != nil || after.version == before.version {
			return err
		}
		table.Audit(ctx, tx, action, id, before, after)
		tx.AfterCommit(s.worker.outbox.WakeUp)
		return nil
	})
	return after, err
}

// Update changes a webhook. It returns apierr.WebhookNotFound, apierr.NoAccess, apierr.GrantNotHeld, apierr.InvalidInput and
// apierr.PreconditionFailed.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Webhook, error) {
	if err := s.checkSettings(in.URL, in.Types.Value); err != nil {
		return Webhook{}, err
	}
	return s.change(ctx, in.ID, actionUpdate, func(tx *store.Tx, before Webhook) error {
		after := in.apply(before)
		if after.URL != before.URL || after.IncludeRecord != before.IncludeRecord || storedTypes(after.Types) != storedTypes(before.Types) ||
			after.Status == active && before.Status != active {
			if err := s.checkOwner(ctx, tx, before.AccountID); err != nil {
				return err
			}
		}
		if err := writeWebhook(ctx, tx, before, after); err != nil {
			return err
		}
		if after.Status == active && before.Status != active {
			return resume(ctx, tx, in.ID)
		}
		return nil
	})
}

// apply returns the webhook after the change.
func (in UpdateInput) apply(w Webhook) Webhook {
	if in.URL != nil {
		w.URL = *in.URL
	}
	if in.Description != nil {
		w.Description = *in.Description
	}
	if in.Types.Given {
		w.Types = split(storedTypes(in.Types.Value))
	}
	if in.IncludeRecord != nil {
		w.IncludeRecord = *in.IncludeRecord
	}
	if in.Status != nil && *in.Status != w.Status {
		w.Status, w.Reason = *in.Status, ""
	}
	return w
}

// writeWebhook writes what has changed of a webhook, if anything.
func writeWebhook(ctx context.Context, tx *store.Tx, before, after Webhook) error {
	if after.URL == before.URL && after.Description == before.Description && strings.Join(after.Types, ",") == strings.Join(before.Types, ",") &&
		after.IncludeRecord == before.IncludeRecord && after.Status == before.Status && after.Reason == before.Reason {
		return nil
	}
	return tx.Run(ctx, updateWebhook, after.ID, after.URL, after.Description, strings.Join(after.Types, ","), after.IncludeRecord, after.Status, after.Reason,
		tx.Now(), records.Actor(ctx))
}

// Rotate replaces the secret. The one before signs as well for a time. It returns apierr.WebhookNotFound, apierr.NoAccess,
// apierr.GrantNotHeld and apierr.PreconditionFailed.
func (s *Service) Rotate(ctx context.Context, in RotateInput) (NewSecret, error) {
	secret := newSecret()
	sealed, err := s.db.Seal(webhooksTable, secretColumn, in.ID, secret)
	if err != nil {
		return NewSecret{}, err
	}
	present, err := s.secrets(ctx, s.db, in.ID, 0)
	if err != nil {
		return NewSecret{}, err
	}
	former := ""
	if *in.Overlap > 0 {
		if former, err = s.db.Seal(webhooksTable, formerColumn, in.ID, present.newest); err != nil {
			return NewSecret{}, err
		}
	}
	w, err := s.change(ctx, in.ID, actionRotate, func(tx *store.Tx, before Webhook) error {
		if err := s.checkOwner(ctx, tx, before.AccountID); err != nil {
			return err
		}
		var stored string
		if err := tx.QueryRow(ctx, selectSecret, in.ID).Scan(&stored); err != nil {
			return err
		}
		if stored != present.sealed {
			return apierr.PreconditionFailed // another request has replaced it meanwhile
		}
		var until *store.Time
		if former != "" {
			at := tx.Now().Add(time.Duration(*in.Overlap) * time.Hour)
			until = &at
		}
		return tx.Run(ctx, updateSecrets, in.ID, sealed, former, until, tx.Now(), records.Actor(ctx))
	})
	return NewSecret{w, secretText(secret)}, err
}

// delete deletes a webhook with its deliveries. It returns apierr.WebhookNotFound, apierr.NoAccess and apierr.PreconditionFailed.
func (s *Service) delete(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := table.Get(ctx, tx, in.ID, access.Delete)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		table.Audit(ctx, tx, actionDelete, in.ID, before, nil)
		return tx.RunEach(ctx, in.ID, deleteDeliveries, deleteProgress, deleteWebhook)
	})
	return endpoint.Confirm(ctx, s.Texts, "webhooks.deleted"), err
}
