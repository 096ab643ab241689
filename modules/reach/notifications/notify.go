package notifications

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/sse"
	"kontor/store"
)

// parentEvent is an event on its way into the tables: the parent row, and what its notifications share.
type parentEvent struct {
	id         string
	event      string
	customerID string
	recType    string
	recID      string
	titleKey   string
	contentKey string
	content    string
	args       map[string]any
	metadata   string // args as they are stored
	system     bool
	channels   []string
	everywhere bool
	undo       string // path of the secret link that undoes the event
	rendered   map[messageKey]*message
	createdAt  store.Time

	chatMessage *event.ChatMessage // nil for none
}

// chatMessageID returns the id of the chat message that the event is about, or an empty text.
func (p *parentEvent) chatMessageID() string {
	if p.chatMessage == nil {
		return ""
	}
	return p.chatMessage.ID
}

// recipientCopy identifies the notification of one recipient.
type recipientCopy struct {
	id, userID string
}

// Notify notifies the recipients of an event: a notification for each, a delivery for each channel of the event for which
// they have an address, and after the commit a frame on their open streams. Call it in the transaction of the change. The caller, who
// caused the event, is no recipient, except of events about the security of their account.
func (s *Service) Notify(ctx context.Context, tx *store.Tx, e event.Event) error {
	_, _, err := s.store(ctx, tx, parentOf(e), recipientsOf(ctx, e))
	return err
}

// recipientsOf returns the recipients of an event.
func recipientsOf(ctx context.Context, e event.Event) []string {
	actor := access.From(ctx).UserID
	if actor == "" || kinds[e.Kind].ownAccount || !slices.Contains(e.Recipients, actor) {
		return e.Recipients
	}
	return slices.DeleteFunc(slices.Clone(e.Recipients), func(id string) bool { return id == actor })
}

// parentOf returns the event as it is stored.
func parentOf(e event.Event) parentEvent {
	k := kinds[e.Kind]
	rendered, _ := e.Rendered.(map[messageKey]*message)
	return parentEvent{
		event: string(e.Kind), customerID: idOrNil(e.CustomerID), recType: e.Type.Name, recID: idOrNil(e.RecordID),
		titleKey: k.titleKey, contentKey: k.contentKey,
		content: e.Content, args: e.Args, system: k.system, channels: k.channels, everywhere: k.everywhere, rendered: rendered, undo: e.Undo,
		chatMessage: e.ChatMessage,
	}
}

// store writes an event with its notifications and deliveries, and returns the id of the parent row and the number of
// notifications. Without recipients it writes nothing.
func (s *Service) store(ctx context.Context, tx *store.Tx, parent parentEvent, recipients []string) (parentID string, n int, err error) {
	recipients = unique(recipients)
	if len(recipients) == 0 {
		return "", 0, nil
	}
	slices.Sort(recipients) // users that follow each other share pages of the indexes
	// All bits of the id are random, unlike those of other ids: it takes no more than the id to delete the event.
	parent.id, parent.metadata = uuid.NewString(), "{}"
	if s.db.Shared() {
		parent.createdAt, err = s.timestamps.nextShared(ctx, tx)
	} else {
		parent.createdAt, err = s.timestamps.next(ctx, tx)
	}
	if err != nil {
		return "", 0, err
	}
	if len(parent.args) > 0 {
		encoded, err := json.Marshal(parent.args, json.Deterministic(true))
		if err != nil {
			return "", 0, fmt.Errorf("arguments of %s: %w", parent.event, err)
		}
		parent.metadata = string(encoded)
	}
	// Pointers to the texts: an interface with a text would be allocated.
	_, err = tx.Exec(ctx, insertParent, &parent.id, &parent.event, &parent.customerID, &parent.recType, &parent.recID, &parent.createdAt, records.Actor(ctx))
	if err != nil {
		return "", 0, fmt.Errorf("write an event: %w", err)
	}
	copies, err := insertNotifications(ctx, tx, &parent, recipients)
	if err != nil {
		return "", 0, fmt.Errorf("write the notifications of an event: %w", err)
	}
	if err := s.enqueueAll(ctx, tx, parent, copies); err != nil {
		return "", 0, err
	}
	s.feed.announce(tx, parent.createdAt, recipients, func() { s.publish(parent, copies) })
	return parent.id, len(copies), nil
}

// idOrNil returns the id, or the nil id for none.
func idOrNil(id string) string {
	if id == "" {
		return store.NilID
	}
	return id
}

// unique removes empty and repeated ids and keeps the order.
func unique(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	kept := make([]string, 0, len(ids))
	for _, id := range ids {
		if id != "" && !seen[id] {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	return kept
}

// insertNotifications writes a row for each recipient, in few statements.
func insertNotifications(ctx context.Context, tx *store.Tx, parent *parentEvent, recipients []string) ([]recipientCopy, error) {
	copies := make([]recipientCopy, len(recipients))
	for i, userID := range recipients {
		copies[i] = recipientCopy{id: store.NewID(), userID: userID}
	}
	shared := []any{&parent.id, &parent.customerID, &parent.event, &parent.titleKey, &parent.contentKey, &parent.content, types.Fold(parent.content),
		&parent.recType, &parent.recID, &parent.metadata, parent.chatMessageID(), parent.system, &parent.createdAt}
	for part := range store.Batches(copies) {
		args := append(make([]any, 0, len(shared)+2*len(part)), shared...)
		for i := range part {
			args = append(args, &part[i].id, &part[i].userID)
		}
		if _, err := tx.Exec(ctx, insertNotificationsStatement(len(part)), args...); err != nil {
			return nil, err
		}
	}
	return copies, nil
}

const insertParent = `
	INSERT INTO notices (id, event, customer_id, rec_type, rec_id, created_at, created_by)
	VALUES ($1, $2, $3, $4, $5, $6, $7)`

// The values that all notifications of an event share are bound once.
const (
	sharedColumns = `notice_id, customer_id, event, title_key, content_key, content, content_low, rec_type, rec_id, metadata,
		chat_message_id, system, created_at`
	sharedArgs = 13
)

// insertNotificationsStatement returns the statement that writes n notifications.
func insertNotificationsStatement(n int) string {
	shared := strings.Trim(store.Values(1, sharedArgs, 0), "()")
	rows := strings.ReplaceAll(store.Values(n, 2, sharedArgs), ")", ", "+shared+")")
	return `
	INSERT INTO notifications (id, user_id, ` + sharedColumns + `)
	VALUES ` + rows
}

const selectLatest = `SELECT COALESCE(MAX(created_at), 0) FROM notifications WHERE deleted = FALSE`

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
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
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
	return store.All(ctx, s.db, scanListed, statement, userID, p.At, p.ID, limit)
}
