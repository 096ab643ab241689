package notifications

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/personal"
	"kontor/modules/reach/deliveries"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "notifications", Holds: "notifications to a user, and notifications to others about a customer", Sections: []string{"notifications"}},
		{Name: "notices", Why: "It holds events, ids and times only."},
		{Name: "open_streams", Why: "It holds how many streams users have open now, by user id."},
		{Name: "notice_clock", Why: "It holds the time of the latest event."},
	}
}

// PersonalSections declares the notifications to the reader about a customer or to a user.
func (s *Service) PersonalSections() []personal.Section {
	const one = "GET /v1/notifications/{notification_id}"
	show := func(ctx context.Context, _ store.Querier, n Notification) (any, error) {
		listed := Listed{Notification: n}
		s.templates.renderListed(endpoint.Language(ctx), &listed)
		return listed, nil
	}
	return []personal.Section{
		personal.Records(personal.About{Name: "notifications", Kind: personal.Customer, Endpoint: one},
			personal.Of[Notification]{Table: table, All: access.Read, Condition: "notifications.customer_id = $2 AND notifications.deleted = FALSE", Show: show}),
		personal.Records(personal.About{Name: "notifications", Kind: personal.User, Endpoint: one},
			personal.Of[Notification]{Table: table, All: access.Read, Condition: "notifications.user_id = $2 AND notifications.deleted = FALSE", Show: show}),
	}
}

const (
	selectReceivedIDs = `SELECT id FROM notifications WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	deleteNotification = `DELETE FROM notifications WHERE id = $1`

	selectCustomerNotifications = `
		SELECT id, metadata FROM notifications
		WHERE customer_id = $1 AND deleted = FALSE AND id > $2
		UNION ALL
		SELECT id, metadata FROM notifications
		WHERE customer_id = $1 AND deleted = TRUE AND id > $2
		ORDER BY id LIMIT $3`

	eraseNotification = `UPDATE notifications SET content = '', content_low = '', metadata = $2, version = version + 1 WHERE id = $1`
)

// ErasePerson deletes the notifications to a user, and removes what those to others say about a customer.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	switch subject.Kind {
	case personal.Customer:
		return personal.Run(ctx, tx, cursor, func(ctx context.Context, tx *store.Tx, after string) (string, error) {
			return eraseAbout(ctx, tx, subject.ID, after)
		})
	case personal.User:
		return personal.Run(ctx, tx, cursor, personal.Delete(selectReceivedIDs, deleteNotification, subject.ID))
	}
	return "", nil
}

// customerNotification is a notification about a customer.
type customerNotification struct{ id, metadata string }

// eraseAbout erases a batch of notifications about a customer, with their deliveries.
func eraseAbout(ctx context.Context, tx *store.Tx, customerID, after string) (last string, err error) {
	batch, err := store.All(ctx, tx, scanAbout, selectCustomerNotifications, customerID, after, personal.Batch)
	if err != nil {
		return "", err
	}
	for _, n := range batch {
		neutral, err := neutralMetadata(n.metadata)
		if err != nil {
			return "", fmt.Errorf("metadata of notification %s: %w", n.id, err)
		}
		if _, err := tx.Exec(ctx, eraseNotification, n.id, neutral); err != nil {
			return "", err
		}
		if err := deliveries.EraseOf(ctx, tx, n.id); err != nil {
			return "", err
		}
	}
	if len(batch) < personal.Batch {
		return "", nil
	}
	return batch[len(batch)-1].id, nil
}

func scanAbout(row store.Scanner) (n customerNotification, err error) {
	err = row.Scan(&n.id, &n.metadata)
	return n, err
}

// neutralMetadata removes the texts from the arguments of a template, except codes such as a status.
func neutralMetadata(stored string) (string, error) {
	if stored == testMetadata {
		return stored, nil
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(stored), &args); err != nil {
		return "", err
	}
	for name, value := range args {
		if _, isText := value.(string); isText && !slices.Contains(termArgs, name) {
			args[name] = ""
		}
	}
	text, err := json.Marshal(args, json.Deterministic(true))
	return string(text), err
}
