package notifications

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "notifications", Holds: "notifications to a user, and notifications to others about a customer"},
		{Name: "deliveries", Holds: "e-mails and SMS to a user, and to others about a customer"},
		{Name: "notices", Why: "It holds events, ids and times only."},
		{Name: "open_streams", Why: "It holds how many streams users have open now, by user id."},
		{Name: "notice_clock", Why: "It holds the time of the latest event."},
	}
}

const (
	selectReceived = `
		SELECT ` + columns + ` FROM notifications
		WHERE user_id = $1 AND id > $2 AND deleted = FALSE ORDER BY id LIMIT $3`

	selectAboutCustomer = `
		SELECT ` + columns + ` FROM notifications
		WHERE customer_id = $1 AND id > $2 AND deleted = FALSE ORDER BY id LIMIT $3`

	selectDeliveriesOf = `
		SELECT ` + deliveryColumns + ` FROM deliveries
		WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// ExportPerson writes notifications and deliveries to a user, or the notifications about a customer.
func (s *Service) ExportPerson(ctx context.Context, q store.Querier, subject personal.Subject, w *personal.Writer) error {
	scan := func(rows *store.Rows) (any, string, error) {
		n, err := scanListed(rows)
		s.templates.renderListed(requestLanguage(ctx), &n)
		return n, n.ID, err
	}
	switch subject.Kind {
	case personal.Customer:
		return personal.Each(ctx, q, w, "notifications", selectAboutCustomer, subject.ID, scan)
	case personal.User:
		if err := personal.Each(ctx, q, w, "notifications", selectReceived, subject.ID, scan); err != nil {
			return fmt.Errorf("export notifications: %w", err)
		}
		return personal.Each(ctx, q, w, "deliveries", selectDeliveriesOf, subject.ID, func(rows *store.Rows) (any, string, error) {
			d, err := scanDelivery(rows)
			return d, d.ID, err
		})
	}
	return nil
}

const (
	selectReceivedIDs = `SELECT id FROM notifications WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectDeliveryIDs = `SELECT id FROM deliveries WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	deleteNotification = `DELETE FROM notifications WHERE id = $1`

	deleteDelivery = `DELETE FROM deliveries WHERE id = $1`

	deleteDeliveriesTo = `DELETE FROM deliveries WHERE recipient_key = $1`

	selectCredentialsOf = `SELECT value FROM user_credentials WHERE user_id = $1 AND value > $2 ORDER BY value LIMIT $3`

	selectCustomerNotifications = `
		SELECT id, notice_id, metadata FROM notifications
		WHERE customer_id = $1 AND deleted = FALSE AND id > $2
		UNION ALL
		SELECT id, notice_id, metadata FROM notifications
		WHERE customer_id = $1 AND deleted = TRUE AND id > $2
		ORDER BY id LIMIT $3`

	eraseNotification = `UPDATE notifications SET content = '', content_low = '', metadata = $2, version = version + 1 WHERE id = $1`

	deleteDeliveriesOfNotice = `DELETE FROM deliveries WHERE notification_id = $1`
)

// ErasePerson deletes what was sent to a user, and removes what notifications to others say about a customer. It must run before
// the credentials of a user are deleted. An attempt to send a delivery that is running ends without a record.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	switch subject.Kind {
	case personal.Customer:
		return personal.Run(ctx, tx, cursor, func(ctx context.Context, tx *store.Tx, after string) (string, error) {
			return eraseAbout(ctx, tx, subject.ID, after)
		})
	case personal.User:
		return personal.Run(ctx, tx, cursor,
			personal.EachID(selectCredentialsOf, subject.ID, func(ctx context.Context, tx *store.Tx, value string) error {
				_, err := tx.Exec(ctx, deleteDeliveriesTo, types.Fold(value))
				return err
			}),
			personal.Delete(selectDeliveryIDs, deleteDelivery, subject.ID),
			personal.Delete(selectReceivedIDs, deleteNotification, subject.ID))
	}
	return "", nil
}

// customerNotification is a notification about a customer.
type customerNotification struct{ id, notice, metadata string }

// eraseAbout erases a batch of notifications about a customer, with the deliveries of their events.
func eraseAbout(ctx context.Context, tx *store.Tx, customerID, after string) (last string, err error) {
	batch, err := store.All(ctx, tx, scanAbout, selectCustomerNotifications, customerID, after, personal.Batch)
	if err != nil {
		return "", err
	}
	notices := map[string]bool{}
	for _, n := range batch {
		neutral, err := neutralMetadata(n.metadata)
		if err != nil {
			return "", fmt.Errorf("metadata of notification %s: %w", n.id, err)
		}
		if _, err := tx.Exec(ctx, eraseNotification, n.id, neutral); err != nil {
			return "", err
		}
		if notices[n.notice] {
			continue
		}
		notices[n.notice] = true
		if _, err := tx.Exec(ctx, deleteDeliveriesOfNotice, n.notice); err != nil {
			return "", err
		}
	}
	if len(batch) < personal.Batch {
		return "", nil
	}
	return batch[len(batch)-1].id, nil
}

func scanAbout(row store.Scanner) (n customerNotification, err error) {
	err = row.Scan(&n.id, &n.notice, &n.metadata)
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
