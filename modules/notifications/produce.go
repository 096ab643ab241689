package notifications

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/store"
)

// source is a notice on its way into the inboxes.
type source struct {
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
	worded     map[wording]*message
	createdAt  store.Time
}

// copied is a copy in the inbox of one recipient.
type copied struct {
	id, userID string
}

// Notify tells the recipients of a notice: a row in the inbox of each, a delivery by each channel of the event for
// which he has an address, and after the commit a frame on his open streams. It belongs into the transaction of the
// change that it tells of.
func (s *Service) Notify(ctx context.Context, tx *store.Tx, n event.Event) error {
	_, _, err := s.post(ctx, tx, sourceOf(n), n.Recipients)
	return err
}

// sourceOf is the notice as it is written.
func sourceOf(n event.Event) source {
	k := kinds[n.Kind]
	worded, _ := n.Worded.(map[wording]*message)
	return source{
		event: string(n.Kind), customerID: orNil(n.CustomerID), recType: n.Type.Name, recID: orNil(n.RecordID),
		titleKey: "notification." + string(n.Kind) + ".title", contentKey: "notification." + string(n.Kind) + ".content",
		content: n.Content, args: n.Args, system: k.system, channels: k.channels, everywhere: k.everywhere, worded: worded,
	}
}

// post writes a notice with its copies and deliveries. Without recipients it writes nothing.
func (s *Service) post(ctx context.Context, tx *store.Tx, src source, recipients []string) (noticeID string, rows int, err error) {
	recipients = unique(recipients)
	if len(recipients) == 0 {
		return "", 0, nil
	}
	src.id, src.metadata = store.NewID(), "{}"
	if src.createdAt, err = s.order.next(ctx, tx); err != nil {
		return "", 0, err
	}
	if len(src.args) > 0 {
		encoded, err := json.Marshal(src.args, json.Deterministic(true))
		if err != nil {
			return "", 0, fmt.Errorf("values of %s: %w", src.event, err)
		}
		src.metadata = string(encoded)
	}
	_, err = tx.Exec(ctx, insertNotice, src.id, src.event, src.customerID, src.recType, src.recID, src.createdAt, records.Actor(ctx))
	if err != nil {
		return "", 0, fmt.Errorf("write the notice: %w", err)
	}
	copies, err := insertCopies(ctx, tx, src, recipients)
	if err != nil {
		return "", 0, fmt.Errorf("write the copies of the notice: %w", err)
	}
	if err := s.enqueueAll(ctx, tx, src, recipients); err != nil {
		return "", 0, err
	}
	tx.AfterCommit(func() { s.publish(src, copies) })
	return src.id, len(copies), nil
}

// orNil is the id, or the nil id for none.
func orNil(id string) string {
	if id == "" {
		return store.NilID
	}
	return id
}

// unique drops empty and repeated ids, in their order.
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

// insertCopies writes a row for each recipient, in few statements.
func insertCopies(ctx context.Context, tx *store.Tx, src source, recipients []string) ([]copied, error) {
	copies := make([]copied, len(recipients))
	for i, userID := range recipients {
		copies[i] = copied{id: store.NewID(), userID: userID}
	}
	shared := []any{src.id, src.customerID, src.event, src.titleKey, src.contentKey, src.content, types.Fold(src.content),
		src.recType, src.recID, src.metadata, src.system, src.createdAt}
	for part := range batches(copies) {
		args := append(make([]any, 0, len(shared)+2*len(part)), shared...)
		for _, c := range part {
			args = append(args, c.id, c.userID)
		}
		if _, err := tx.Exec(ctx, insertCopiesStatement(len(part)), args...); err != nil {
			return nil, err
		}
	}
	return copies, nil
}
