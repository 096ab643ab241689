package notifications

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	selectOwn = `SELECT ` + columns + ` FROM notifications WHERE id = $1 AND user_id = $2 AND deleted = FALSE`

	markRead = `
	UPDATE notifications SET read = TRUE, read_at = $3, version = version + 1
	WHERE id = $1 AND user_id = $2 AND deleted = FALSE
	RETURNING ` + columns

	markRecordRead = `
	UPDATE notifications SET read = TRUE, read_at = $4, version = version + 1
	WHERE rec_id = $1 AND user_id = $2 AND rec_type = $3 AND read = FALSE AND deleted = FALSE`

	countUnread = `SELECT COUNT(*) FROM notifications WHERE user_id = $1 AND read = FALSE AND deleted = FALSE`

	deleteNotice = `
	UPDATE notices SET deleted = TRUE, deleted_at = $2, deleted_by = $3, version = version + 1
	WHERE id = $1 AND deleted = FALSE
	RETURNING created_at`

	// The copies of a notice were made at its moment.
	deleteCopies = `
	UPDATE notifications SET deleted = TRUE, version = version + 1
	WHERE created_at = $2 AND notice_id = $1 AND deleted = FALSE`
)

// MarkRead marks a notification of the caller read and gives the row as it is stored. For an id that is none of his it
// gives a notification without anything in it, and nil when the input does not ask for it.
func (s *Service) MarkRead(ctx context.Context, in ReadInput) (*Notification, error) {
	if !in.Read.Given || in.Read.Null {
		return nil, nil
	}
	caller := access.From(ctx)
	var n Notification
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := scanNotification(tx.QueryRow(ctx, selectOwn, in.ID, caller.UserID))
		if err != nil {
			return err
		}
		before.language = requestLanguage(ctx)
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		if n, err = scanNotification(tx.QueryRow(ctx, markRead, in.ID, caller.UserID, tx.Now())); err != nil {
			return err
		}
		table.Audit(ctx, tx, "notifications.read", n.ID, nil, nil)
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return nothing(), nil
	}
	if err != nil {
		return nil, err
	}
	n.language = requestLanguage(ctx)
	return &n, nil
}

// Updated tells how many notifications were marked read.
type Updated struct {
	Updated int64 `json:"updated" example:"3" doc:"How many rows were changed."`
}

// MarkRecord marks the caller's notifications of a record read.
func (s *Service) MarkRecord(ctx context.Context, in RecordInput) (Updated, error) {
	var n int64
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		var err error
		n, err = s.MarkRecordRead(ctx, tx, access.From(ctx).UserID, in.RecType, in.RecID)
		return err
	})
	return Updated{Updated: n}, err
}

// MarkRecordRead marks the notifications of a user that refer to a record read, in the transaction of whatever tells
// that he has seen it. A record type is no record: what a test notification refers to instead of a record is left alone.
func (s *Service) MarkRecordRead(ctx context.Context, tx *store.Tx, userID, recType, recID string) (int64, error) {
	for _, t := range access.RecordTypes() {
		if t.ID == recID {
			return 0, nil
		}
	}
	n, err := tx.Exec(ctx, markRecordRead, recID, userID, recType, tx.Now())
	if err != nil {
		return 0, fmt.Errorf("mark the notifications of a record read: %w", err)
	}
	if n > 0 {
		tx.Audit(store.AuditEntry{Actor: userID, Action: "notifications.read_record", RecType: recType, RecID: recID})
	}
	return n, nil
}

// Unread tells how many notifications wait for the caller.
type Unread struct {
	UnreadCount int64 `json:"unread_count" example:"3"`
}

// CountUnread counts the caller's notifications that are not read.
func (s *Service) CountUnread(ctx context.Context, _ endpoint.None) (Unread, error) {
	userID := access.From(ctx).UserID
	n, err := s.db.Memo(ctx, "unread notifications "+userID, []string{notificationsTable}, func() (int64, error) {
		var n int64
		err := s.db.QueryRow(ctx, countUnread, userID).Scan(&n)
		return n, err
	})
	return Unread{UnreadCount: n}, err
}

// Fixed answers of the API, in English whatever the language of the request.
const (
	messageDeleted        = "Notification deleted"
	messageNotImplemented = "Not implemented"
)

// Delete hides a notice, named by its own id, from all its recipients. Whoever may call it may delete any. It returns
// apierr.DatabaseError for an unknown id as for every failure.
func (s *Service) Delete(ctx context.Context, in OneInput) (endpoint.Message, error) {
	by := records.Actor(ctx)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		var createdAt store.Time
		if err := tx.QueryRow(ctx, deleteNotice, in.ID, tx.Now(), by).Scan(&createdAt); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteCopies, in.ID, createdAt); err != nil {
			return err
		}
		table.Audit(ctx, tx, "notifications.delete", in.ID, nil, nil)
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return endpoint.Message{}, apierr.DatabaseError // nothing that an operator would have to look into
	}
	if err != nil {
		// The cause goes to the log as text: this route has one answer to all of them.
		return endpoint.Message{}, apierr.DatabaseError.Wrap(errors.New("delete a notice: " + err.Error()))
	}
	return endpoint.Message{Message: messageDeleted}, nil
}

// Preferences stands in for the preferences that do not exist yet.
func (s *Service) Preferences(context.Context, endpoint.None) (endpoint.Message, error) {
	return endpoint.Message{Message: messageNotImplemented}, nil
}
