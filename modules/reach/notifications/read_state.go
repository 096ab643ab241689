package notifications

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"kontor/modules/kit/list"
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

	countUnread = `SELECT NULL AS value, count(*) AS rows FROM notifications WHERE user_id = $1 AND read = FALSE AND deleted = FALSE`

	hideOwn = `
	UPDATE notifications SET deleted = TRUE, version = version + 1
	WHERE id = $1 AND user_id = $2 AND deleted = FALSE`

	selectAnyOwn = `SELECT 1 FROM notifications WHERE id = $1 AND user_id = $2`

	deleteParent = `
	UPDATE notices SET deleted = TRUE, deleted_at = $2, deleted_by = $3, version = version + 1
	WHERE id = $1 AND deleted = FALSE
	RETURNING created_at`

	// Notifications have the creation time of their event, which has an index.
	deleteNotifications = `
	UPDATE notifications SET deleted = TRUE, version = version + 1
	WHERE created_at = $2 AND notice_id = $1 AND deleted = FALSE`
)

// MarkRead marks a notification of the caller as read and returns it as it is stored, without rendered texts. It returns an
// empty notification for an id that is not one of theirs, and nil if the input does not ask for the change.
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
		before.language = endpoint.Language(ctx)
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
		return &Notification{ID: store.NilID, UserID: store.NilID, CustomerID: store.NilID, RecID: store.NilID}, nil
	}
	if err != nil {
		return nil, err
	}
	n.language = endpoint.Language(ctx)
	return &n, nil
}

// Updated is the number of notifications that were marked as read.
type Updated struct {
	Updated int64 `json:"updated" example:"3" doc:"How many notifications were changed."`
}

// MarkRecord marks the caller's notifications about a record as read.
func (s *Service) MarkRecord(ctx context.Context, in RecordInput) (Updated, error) {
	var n int64
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		var err error
		n, err = s.MarkRecordRead(ctx, tx, access.From(ctx).UserID, in.RecType, in.RecID)
		return err
	})
	return Updated{Updated: n}, err
}

// MarkRecordRead marks the notifications of a user about a record as read and returns their number. It ignores the id of a
// record type, to which test notifications refer in place of a record.
func (s *Service) MarkRecordRead(ctx context.Context, tx *store.Tx, userID, recType, recID string) (int64, error) {
	for _, t := range access.RecordTypes() {
		if t.ID == recID {
			return 0, nil
		}
	}
	n, err := tx.Exec(ctx, markRecordRead, recID, userID, recType, tx.Now())
	if err != nil {
		return 0, fmt.Errorf("mark the notifications of a record as read: %w", err)
	}
	if n > 0 {
		tx.Audit(store.AuditEntry{Actor: userID, Action: "notifications.read_record", RecType: recType, RecID: recID})
	}
	return n, nil
}

// Unread is the number of the caller's unread notifications.
type Unread struct {
	UnreadCount int64 `json:"unread_count" example:"3"`
}

// CountUnread returns the number of the caller's unread notifications.
func (s *Service) CountUnread(ctx context.Context, _ endpoint.None) (Unread, error) {
	userID := access.From(ctx).UserID
	n, err := s.db.CountRows(ctx, "unread notifications "+userID, &store.Counting{
		SQL: countUnread, Args: []any{userID}, Rows: []store.KeyedTable{{Table: notificationsTable, Key: "id"}},
		Only: func(context.Context) ([]store.Alternatives, error) {
			return []store.Alternatives{{Equal: []store.Equal{{Column: "user_id", Value: userID}}}}, nil
		},
	})
	return Unread{UnreadCount: n}, err
}

// Fixed answers of the API, in English whatever the language of the request.
const (
	messageDeleted        = "Notification deleted"
	messageNotImplemented = "Not implemented"
)

// Hide removes a notification from the caller's list, count and streams. Its other recipients keep theirs. A repetition changes
// nothing. It returns apierr.NotificationNotFound for an id that is not one of the caller's notifications.
func (s *Service) Hide(ctx context.Context, in OneInput) (endpoint.Message, error) {
	caller := access.From(ctx)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		hidden, err := tx.Exec(ctx, hideOwn, in.ID, caller.UserID)
		if err != nil {
			return err
		}
		if hidden > 0 {
			table.Audit(ctx, tx, "notifications.hide", in.ID, nil, nil)
			return nil
		}
		own, err := store.Exists(ctx, tx, selectAnyOwn, in.ID, caller.UserID)
		if err == nil && !own {
			err = apierr.NotificationNotFound
		}
		return err
	})
	return endpoint.Confirm(ctx, s.texts, "notifications.hidden"), err
}

// Delete deletes an event for all its recipients. The id is that of the event, which only the trigger returns: all callers may
// delete an event by its id. It returns apierr.DatabaseError for an unknown id as for every failure.
func (s *Service) Delete(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error { return deleteEvent(ctx, tx, in.ID) })
	if errors.Is(err, store.ErrNotFound) {
		return endpoint.Message{}, apierr.DatabaseError.Final("missing") // expected: no cause for the log
	}
	if err != nil {
		// As text, so that the answer stays the one of this route whatever the cause is.
		return endpoint.Message{}, apierr.DatabaseError.Wrap(errors.New("delete an event: " + err.Error()))
	}
	return endpoint.Message{Message: messageDeleted}, nil
}

// deleteEvent hides an event from all its recipients. It returns store.ErrNotFound.
func deleteEvent(ctx context.Context, tx *store.Tx, id string) error {
	var createdAt store.Time
	if err := tx.QueryRow(ctx, deleteParent, id, tx.Now(), records.Actor(ctx)).Scan(&createdAt); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteNotifications, id, createdAt); err != nil {
		return err
	}
	table.Audit(ctx, tx, "notifications.delete", auditedEvent(id), nil, nil)
	return nil
}

// auditedEvent returns what the audit trail names an event by: a digest of its id. Readers of the trail must not learn the id, because
// it is all that the deletion of the event takes. The entries about an event have the same digest.
func auditedEvent(id string) string {
	const digestVersion = 8 // of UUIDs whose content is the application's
	return uuid.NewHash(sha256.New(), uuid.Nil, []byte(id), digestVersion).String()
}

// Preferences answers requests for the preferences of notifications, which do not exist yet.
func (s *Service) Preferences(context.Context, endpoint.None) (endpoint.Message, error) {
	return endpoint.Message{Message: messageNotImplemented}, nil
}

// readAllBatch is the number of notifications that one transaction marks as read, so that other writes wait briefly.
const readAllBatch = 1000

// markAllRead begins the statement that marks notifications as read. Its condition and its limit follow.
const markAllRead = `
	UPDATE notifications SET read = TRUE, read_at = $1, version = version + 1
	WHERE id IN (SELECT id FROM notifications WHERE `

const selectNewestUnread = `
	SELECT COALESCE(MAX(created_at), 0) FROM notifications
	WHERE user_id = $1 AND read = FALSE AND deleted = FALSE`

// MarkAll marks the caller's unread notifications that match a search as read: those that exist when it begins, in batches. The
// other parameters of lists do not matter. It returns their number. A repetition changes nothing. An interrupted call has marked whole batches.
func (s *Service) MarkAll(ctx context.Context, in list.Input) (Updated, error) {
	caller := access.From(ctx)
	var newest store.Time
	if err := s.db.QueryRow(ctx, selectNewestUnread, caller.UserID).Scan(&newest); err != nil {
		return Updated{}, fmt.Errorf("read the newest notification: %w", err)
	}
	own := list.Where{SQL: "user_id = $1 AND read = FALSE AND created_at <= $2", Args: []any{caller.UserID, newest}}
	where, some, err := notificationList.Matching(in.Query, own)
	if err != nil || !some || newest == 0 {
		return Updated{}, err
	}
	where = where.After(1)
	statement := markAllRead + where.SQL + " ORDER BY created_at, id LIMIT " + strconv.Itoa(readAllBatch) + ")"
	var all Updated
	for {
		n, err := s.markBatch(ctx, statement, where.Args)
		if err != nil {
			return Updated{}, fmt.Errorf("mark notifications as read: %w", err)
		}
		all.Updated += n
		if n < readAllBatch {
			return all, nil
		}
	}
}

// markBatch runs one batch and returns the number of changed rows.
func (s *Service) markBatch(ctx context.Context, statement string, args []any) (n int64, err error) {
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		var err error
		if n, err = tx.Exec(ctx, statement, append([]any{tx.Now()}, args...)...); err != nil || n == 0 {
			return err
		}
		table.Audit(ctx, tx, "notifications.read_all", store.NilID, nil, nil)
		return nil
	})
	return n, err
}
