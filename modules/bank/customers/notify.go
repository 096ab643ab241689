package customers

import (
	"context"
	"strconv"

	"kontor/modules/kit/event"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const maxNotice = 500 // characters

// NotifyInput is a message of the bank to users about a customer.
type NotifyInput struct {
	ID      string   `path:"id"`
	Text    string   `json:"text" required:"true" maxLength:"500" doc:"Recipients see it in their notifications; e-mails do not contain it."`
	UserIDs []string `json:"user_ids" required:"true" maxItems:"20" doc:"1 to 20 active users."`
}

// Validate checks all data. Whether the users exist is checked in the transaction.
func (in *NotifyInput) Validate(v *apierr.Fields) {
	in.Text = validate.Required(v, "text", in.Text, maxNotice)
	if len(in.UserIDs) == 0 {
		v.Add("user_ids", "invalid.required")
	}
	for i, id := range in.UserIDs {
		in.UserIDs[i] = validate.Parsed(v, "user_ids."+strconv.Itoa(i), id, types.ParseID)
	}
}

// Notified is the number of users that a message reaches.
type Notified struct {
	Recipients int `json:"recipients" example:"1"`
}

// NotifyUsers sends a message about a customer that the caller may update to users. The caller gets none. It returns
// apierr.CustomerNotFound, apierr.NoAccess, apierr.RecordErased and, for users who do not exist or are not active,
// apierr.InvalidInput.
func (s *Service) NotifyUsers(ctx context.Context, in NotifyInput) (Notified, error) {
	actor := access.From(ctx).UserID
	e := event.Event{Kind: event.CustomerNotice, CustomerID: in.ID, Type: access.Notifications, Args: map[string]any{"Text": in.Text}}
	for _, id := range in.UserIDs {
		if id != actor {
			e.Recipients = append(e.Recipients, id)
		}
	}
	e = s.notify.Prerender(ctx, e)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := table.Get(ctx, tx, in.ID, access.Update)
		if err != nil {
			return err
		}
		if c.Erased() {
			return apierr.RecordErased
		}
		active, err := s.users.Active(ctx, tx, in.UserIDs...)
		if err != nil {
			return err
		}
		var problems apierr.Fields
		for i, id := range in.UserIDs {
			if !active[id] {
				problems.Add("user_ids."+strconv.Itoa(i), "invalid.unknown_record")
			}
		}
		if err := problems.Err(); err != nil {
			return err
		}
		tx.Audit(store.AuditEntry{Actor: actor, Action: "customers.notify", RecType: access.Notifications.Name, RecID: c.ID})
		return s.notify.Notify(ctx, tx, e)
	})
	return Notified{Recipients: len(e.Recipients)}, err
}
