package notifications

import (
	"context"
	"fmt"
	"strconv"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/store"
)

// readAllBatch is the number of notifications that one transaction marks as read, so that other writes wait briefly.
const readAllBatch = 1000

// markAllRead begins the statement that marks notifications as read. Its condition and its limit follow.
const markAllRead = `
	UPDATE notifications SET read = TRUE, read_at = $1, version = version + 1
	WHERE id IN (SELECT id FROM notifications WHERE `

const selectNewestUnread = `
	SELECT COALESCE(MAX(created_at), 0) FROM notifications
	WHERE user_id = $1 AND read = FALSE AND deleted = FALSE`

// MarkAll marks the caller's unread notifications that match a search as read: those that exist when it begins, in batches. It
// returns their number. A repetition changes nothing. An interrupted call has marked whole batches.
func (s *Service) MarkAll(ctx context.Context, in AllInput) (Updated, error) {
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
