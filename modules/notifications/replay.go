package notifications

import (
	"context"
	"errors"
	"fmt"

	"kontor/server/sse"
	"kontor/store"
)

const (
	// maxReplayed bounds the notices of the system that a stream without Last-Event-ID begins with.
	maxReplayed = 100
	// replayPage is how many copies are read at once when a stream resumes.
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

// beginning is what a stream begins with.
type streamStart struct {
	first    []byte       // frames
	replayed []string     // ids of the copies among them
	position sse.Position // everything up to here is in them, or is not for this stream
}

// begin finds out where a stream begins: behind the event that the client has seen last or, if it names none, now, with
// what the system had to say and never could. An unknown event gets a frame that tells the client to load its list.
func (s *Service) begin(ctx context.Context, stream *sse.Stream, lastID string) (streamStart, error) {
	b := streamStart{first: append([]byte(nil), openFrame...)}
	if lastID != "" {
		var at store.Time
		err := s.db.QueryRow(ctx, selectPosition, truncateID(lastID), stream.User).Scan(&at)
		if err == nil {
			b.position = sse.Position{At: int64(at), ID: lastID}
			return b, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return b, fmt.Errorf("read the last event of a stream: %w", err)
		}
		b.first = append(b.first, resetFrame...)
	}
	var at store.Time
	err := s.db.QueryRow(ctx, selectLatestOf, stream.User).Scan(&at, &b.position.ID)
	if errors.Is(err, store.ErrNotFound) {
		return b, nil
	}
	if err != nil {
		return b, fmt.Errorf("read the latest notification: %w", err)
	}
	b.position.At = int64(at)
	if lastID != "" {
		return b, nil
	}
	missed, err := s.copies(ctx, selectUnsent, stream.User, b.position, maxReplayed)
	if err != nil {
		return b, fmt.Errorf("read what the system had to say: %w", err)
	}
	if b.first, b.replayed, err = s.appendFrames(ctx, b.first, stream, missed); err != nil {
		return b, err
	}
	return b, nil
}

func truncateID(id string) string { return id[:min(len(id), maxEventID)] }

// catchUp writes what was committed behind a position, page by page, until nothing newer was published meanwhile; then
// the stream is live. There is no gap: what is published was committed before, so that the reading after it finds it.
// And nothing comes twice: the hub drops what lies before the position at which the stream went live.
func (s *Service) catchUp(stream *sse.Stream, position sse.Position) error {
	for !stream.Ended() {
		ctx, cancel := context.WithTimeout(context.Background(), checkTime)
		newest := stream.Newest()
		missed, frames, ids, err := s.missed(ctx, stream, position)
		cancel()
		if err != nil {
			return err
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
			position = newest // it was deleted meanwhile
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

// copies reads copies of a user on one side of a position.
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
