package notifications

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
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
	parent.id, parent.metadata = store.NewID(), "{}"
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
	if err := s.enqueueAll(ctx, tx, parent, recipients); err != nil {
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
	for part := range batches(copies) {
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
