package deliveries

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/store"
)

// PersonalData lists the table of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{{Name: tableName, Holds: "e-mails and SMS to a user, and to others about a customer", Sections: []string{"deliveries"}}}
}

const selectDeliveriesOf = `
	SELECT id, channel, recipient, CASE WHEN secret = TRUE THEN '' ELSE subject END, CASE WHEN secret = TRUE THEN '' ELSE text END, created_at, sent_at
	FROM deliveries
	WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

// exportedDelivery is an e-mail or SMS in an export. It never has a code or the link of an invitation.
type exportedDelivery struct {
	ID        string      `json:"id"`
	Channel   string      `json:"channel"`
	Recipient string      `json:"to"`
	Subject   string      `json:"subject"`
	Text      string      `json:"text"`
	CreatedAt store.Time  `json:"created_at"`
	SentAt    *store.Time `json:"sent_at"`
}

// PersonalSections declares the e-mails and SMS to a user.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{personal.Own(personal.About{Name: "deliveries", Kind: personal.User, Rule: personal.OwnUser},
		personal.Query(selectDeliveriesOf, func(row store.Scanner) (d exportedDelivery, key string, err error) {
			err = row.Scan(&d.ID, &d.Channel, &d.Recipient, &d.Subject, &d.Text, &d.CreatedAt, &d.SentAt)
			return d, d.ID, err
		}), nil)}
}

const (
	selectDeliveryIDs = `SELECT id FROM deliveries WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	deleteDelivery = `DELETE FROM deliveries WHERE id = $1`

	deleteDeliveriesTo = `DELETE FROM deliveries WHERE recipient_key = $1`

	deleteDeliveriesOfNotification = `DELETE FROM deliveries WHERE notification_id = $1`

	selectCredentialsOf = `SELECT value FROM user_credentials WHERE user_id = $1 AND value > $2 ORDER BY value LIMIT $3`
)

// ErasePerson deletes what was sent to a user. It must run before the credentials of the user are deleted. An attempt that is running
// ends without a record.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor,
		personal.EachID(selectCredentialsOf, subject.ID, func(ctx context.Context, tx *store.Tx, value string) error {
			return tx.Run(ctx, deleteDeliveriesTo, types.Fold(value))
		}),
		personal.Delete(selectDeliveryIDs, deleteDelivery, subject.ID))
}

// EraseOf deletes the deliveries of a notification.
func EraseOf(ctx context.Context, tx *store.Tx, notificationID string) error {
	return tx.Run(ctx, deleteDeliveriesOfNotification, notificationID)
}

const (
	tableName    = "deliveries"
	sealedColumn = "sealed"
)

// sealedDeliveries are the statements that seal texts again after a rotation of the master key.
var sealedDeliveries = store.SealedColumn{
	Table: tableName, Column: sealedColumn,
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
	if d.sealed, err = s.db.Seal(tableName, sealedColumn, d.ID, plain); err == nil {
		d.Text, d.HTML = "", ""
	}
	return err
}

// sealIn seals a secret delivery in the transaction that writes it, unless it was prepared before and the keys have not changed since.
func (s *Service) sealIn(tx *store.Tx, d *Delivery) (err error) {
	switch {
	case d.sealed != "":
		d.sealed, err = tx.Reseal(tableName, sealedColumn, d.ID, d.sealed)
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
	plain, err := db.Unseal(tableName, sealedColumn, d.ID, d.sealed)
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
				sealed, err := tx.Reseal(tableName, sealedColumn, d.ID, d.sealed)
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
