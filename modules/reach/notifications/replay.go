package notifications

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kontor/server/sse"
	"kontor/store"
)

const (
	// maxReplayed bounds the system notifications with which a stream without Last-Event-ID starts.
	maxReplayed = 100
	// replayPage is how many notifications are read at once when a stream resumes.
	replayPage = 100
)

const (
	selectPosition = `SELECT created_at FROM notifications WHERE id = $1 AND user_id = $2`

	selectLatestOf = `
	SELECT created_at, id FROM notifications
	WHERE user_id = $1 AND deleted = FALSE
	ORDER BY created_at DESC, id DESC
	LIMIT 1`

	selectAfter = `
	SELECT ` + columns + ` FROM notifications
	WHERE user_id = $1 AND deleted = FALSE AND (created_at, id) > ($2, $3)
	ORDER BY created_at, id
	LIMIT $4`

	selectUnsent = `
	SELECT ` + columns + ` FROM notifications
	WHERE user_id = $1 AND sent_at IS NULL AND system = TRUE AND deleted = FALSE AND (created_at, id) <= ($2, $3)
	ORDER BY created_at, id
	LIMIT $4`
)

// streamStart is the state in which a stream starts.
type streamStart struct {
	first    []byte       // head and frames
	replayed []string     // ids of the notifications among the frames
	position sse.Position // notifications up to here are among the frames, or are not sent on this stream
}

// readStart returns where a stream starts. With a known lastID it starts after that notification. Without one it starts now,
// with the system notifications that never reached a stream. An unknown lastID adds a frame that makes the client load its
// list again.
func (s *Service) readStart(ctx context.Context, stream *sse.Stream, lastID string) (streamStart, error) {
	start := streamStart{first: append([]byte(nil), openFrame...)}
	if lastID != "" {
		var at store.Time
		err := s.db.QueryRow(ctx, selectPosition, truncateID(lastID), stream.User).Scan(&at)
		if err == nil {
			start.position = sse.Position{At: int64(at), ID: lastID}
			return start, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return start, fmt.Errorf("read the last event of a stream: %w", err)
		}
		start.first = append(start.first, resetFrame...)
	}
	var at store.Time
	err := s.db.QueryRow(ctx, selectLatestOf, stream.User).Scan(&at, &start.position.ID)
	if errors.Is(err, store.ErrNotFound) {
		return start, nil
	}
	if err != nil {
		return start, fmt.Errorf("read the latest notification: %w", err)
	}
	start.position.At = int64(at)
	if lastID != "" {
		return start, nil
	}
	missed, err := s.copies(ctx, selectUnsent, stream.User, start.position, maxReplayed)
	if err != nil {
		return start, fmt.Errorf("read unsent system notifications: %w", err)
	}
	start.first, start.replayed, err = s.appendFrames(ctx, start.first, stream, missed)
	return start, err
}

func truncateID(id string) string { return id[:min(len(id), maxEventID)] }

// catchUp writes the notifications after a position, page by page, until none was published meanwhile. Then the stream is
// live. There is no gap: a notification is committed before it is published, so the next page contains it. There is no
// repetition: the hub drops frames up to the position at which the stream went live.
func (s *Service) catchUp(stream *sse.Stream, position sse.Position) error {
	for !stream.Ended() {
		ctx, cancel := context.WithTimeout(context.Background(), checkTime)
		newest := stream.Newest()
		missed, frames, ids, err := s.missed(ctx, stream, position)
		cancel()
		if err != nil {
			return err
		}
		for !s.mayWrite() && !stream.Ended() { // the session or the right may have ended unnoticed
			<-time.After(feedPause)
		}
		if len(missed) > 0 {
			last := missed[len(missed)-1]
			position = sse.Position{At: int64(*last.CreatedAt), ID: last.ID}
			if !stream.Write(frames) {
				return nil
			}
			s.sent.add(ids)
		}
		if len(missed) == replayPage {
			continue
		}
		if newest.After(position) {
			position = newest // that notification was deleted meanwhile
		}
		if stream.Live(position) {
			return nil
		}
	}
	return nil
}

// missed reads a page of copies after a position, and their frames.
func (s *Service) missed(ctx context.Context, stream *sse.Stream, position sse.Position) (copies []Listed, frames []byte, ids []string, err error) {
	if copies, err = s.copies(ctx, selectAfter, stream.User, position, replayPage); err != nil {
		return nil, nil, nil, err
	}
	frames, ids, err = s.appendFrames(ctx, nil, stream, copies)
	return copies, frames, ids, err
}

// copies reads notifications of a user on one side of a position.
func (s *Service) copies(ctx context.Context, statement, userID string, p sse.Position, limit int) ([]Listed, error) {
	rows, err := s.db.Query(ctx, statement, userID, p.At, p.ID, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []Listed
	for rows.Next() {
		n, err := scanListed(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	return found, rows.Err()
}
