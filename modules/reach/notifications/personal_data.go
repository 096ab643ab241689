package notifications

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "notifications", Holds: "notifications to a user, and notifications to others about a customer", Sections: []string{"notifications"}},
		{Name: "deliveries", Holds: "e-mails and SMS to a user, and to others about a customer", Sections: []string{"deliveries"}},
		{Name: "notices", Why: "It holds events, ids and times only."},
		{Name: "open_streams", Why: "It holds how many streams users have open now, by user id."},
		{Name: "notice_clock", Why: "It holds the time of the latest event."},
	}
}

const selectDeliveriesOf = `
	SELECT id, channel, recipient, CASE WHEN secret = TRUE THEN '' ELSE subject END, CASE WHEN secret = TRUE THEN '' ELSE text END, created_at, sent_at
	FROM deliveries
	WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

// exportedDelivery is an e-mail or SMS in an export. It names no event, whose notifications have other recipients, too, and
// never has a code or the link of an invitation.
type exportedDelivery struct {
	ID        string      `json:"id"`
	Channel   string      `json:"channel"`
	Recipient string      `json:"to"`
	Subject   string      `json:"subject"`
	Text      string      `json:"text"`
	CreatedAt store.Time  `json:"created_at"`
	SentAt    *store.Time `json:"sent_at"`
}

// PersonalSections declares the notifications to the reader about a customer or to a user, and e-mails and SMS to a user.
func (s *Service) PersonalSections() []personal.Section {
	const one = "GET /v1/notifications/{notification_id}"
	show := func(ctx context.Context, _ store.Querier, n Notification) (any, error) {
		listed := Listed{Notification: n}
		s.templates.renderListed(requestLanguage(ctx), &listed)
		return listed, nil
	}
	return []personal.Section{
		personal.Records(personal.About{Name: "notifications", Kind: personal.Customer, Endpoint: one},
			personal.Of[Notification]{Table: table, All: access.Read, Condition: "notifications.customer_id = $2 AND notifications.deleted = FALSE", Show: show}),
		personal.Records(personal.About{Name: "notifications", Kind: personal.User, Endpoint: one},
			personal.Of[Notification]{Table: table, All: access.Read, Condition: "notifications.user_id = $2 AND notifications.deleted = FALSE", Show: show}),
		personal.Own(personal.About{Name: "deliveries", Kind: personal.User, Rule: personal.OwnUser},
			personal.Query(selectDeliveriesOf, func(row store.Scanner) (d exportedDelivery, key string, err error) {
				err = row.Scan(&d.ID, &d.Channel, &d.Recipient, &d.Subject, &d.Text, &d.CreatedAt, &d.SentAt)
				return d, d.ID, err
			}), nil),
	}
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

const (
	deliveriesTable = "deliveries"
	sealedColumn    = "sealed"
)

// sealedDeliveries are the statements that seal texts again after a rotation of the master key.
var sealedDeliveries = store.SealedColumn{
	Table: deliveriesTable, Column: sealedColumn,
	Select: `SELECT id, id, sealed FROM deliveries WHERE sealed <> '' AND sealed NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`,
	Update: `UPDATE deliveries SET sealed = $3 WHERE id = $1 AND sealed = $2`,
}

// secretText is what is sealed of a delivery.
type secretText struct {
	Text string `json:"text"`
	HTML string `json:"html,omitzero"`
}

// seal moves the texts of a secret delivery into its sealed text, which is bound to its id.
func (s *Service) seal(d *Delivery) error {
	plain, err := json.Marshal(secretText{d.Text, d.HTML})
	if err != nil {
		return fmt.Errorf("encode a secret text: %w", err)
	}
	if d.sealed, err = s.db.Seal(deliveriesTable, sealedColumn, d.ID, plain); err == nil {
		d.Text, d.HTML = "", ""
	}
	return err
}

// sealIn seals a secret delivery in the transaction that writes it, unless it was prepared before and the keys have not changed since.
func (s *Service) sealIn(tx *store.Tx, d *Delivery) (err error) {
	switch {
	case d.sealed != "":
		d.sealed, err = tx.Reseal(deliveriesTable, sealedColumn, d.ID, d.sealed)
		return err
	case d.Secret && s.seals():
		return s.seal(d)
	}
	return nil
}

// unseal moves the sealed text of a delivery, if it has one, back into its texts.
func unseal(db *store.DB, d *Delivery) error {
	if d.sealed == "" {
		return nil
	}
	plain, err := db.Unseal(deliveriesTable, sealedColumn, d.ID, d.sealed)
	if err != nil {
		return fmt.Errorf("unseal a secret text: %w", err)
	}
	var t secretText
	if err := json.Unmarshal(plain, &t); err != nil {
		return errors.New("a secret text cannot be decoded")
	}
	d.Text, d.HTML, d.sealed = t.Text, t.HTML, ""
	return nil
}

// seals reports whether texts are sealed. While nodes of another version use the database they are not, because the version before
// would send empty messages.
func (s *Service) seals() bool {
	version := ""
	for i, n := range s.db.Nodes() {
		if i > 0 && n.Version != version {
			return false
		}
		version = n.Version
	}
	return true
}

const (
	selectPlain = `SELECT id, text, html FROM deliveries WHERE secret = TRUE AND text <> '' AND id > $1 ORDER BY id LIMIT $2`

	// An attempt that runs has the text already. One that has ended may have removed it.
	sealPlain = `UPDATE deliveries SET sealed = $2, text = '', html = '' WHERE id = $1 AND text = $3`

	// sealBatch is how many texts one transaction seals.
	sealBatch = 50
)

// SealTexts seals the secret texts that earlier versions have written. Nearly always there is none, which costs one search of an index.
func (s *Service) SealTexts(ctx context.Context) error {
	if !s.seals() {
		return nil
	}
	for after := ""; ; {
		found, err := store.All(ctx, s.db, func(row store.Scanner) (d Delivery, err error) {
			return d, row.Scan(&d.ID, &d.Text, &d.HTML)
		}, selectPlain, after, sealBatch)
		if err != nil || len(found) == 0 {
			return err
		}
		plain := make([]string, len(found))
		for i := range found {
			plain[i] = found[i].Text
			if err := s.seal(&found[i]); err != nil {
				return err
			}
		}
		err = s.db.InTx(ctx, func(tx *store.Tx) error {
			for i, d := range found {
				sealed, err := tx.Reseal(deliveriesTable, sealedColumn, d.ID, d.sealed)
				if err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, sealPlain, d.ID, sealed, plain[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("seal secret texts: %w", err)
		}
		after = found[len(found)-1].ID
	}
}
