package webhooks

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kontor/server/apierr"
	"kontor/store"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32

	secretColumn = "secret"
	formerColumn = "former_secret"
)

const selectSecret = `SELECT secret FROM webhooks WHERE id = $1`

// secretColumns are the statements that seal the secrets again after a rotation of the master key.
var secretColumns = map[string]struct{ selectOld, update string }{
	secretColumn: {
		`SELECT id, id, secret FROM webhooks WHERE secret NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`,
		`UPDATE webhooks SET secret = $3 WHERE id = $1 AND secret = $2`},
	formerColumn: {
		`SELECT id, id, former_secret FROM webhooks WHERE former_secret NOT LIKE $1 AND former_secret <> '' AND id > $2 ORDER BY id LIMIT $3`,
		`UPDATE webhooks SET former_secret = $3 WHERE id = $1 AND former_secret = $2`},
}

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // does not fail: it would end the program
	return secret
}

// secretText returns a secret as Standard Webhooks writes it.
func secretText(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// ParseSecret reads a secret in the form of Standard Webhooks.
func ParseSecret(text string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil || len(secret) < 24 || len(secret) > 64 {
		return nil, errors.New("a secret is whsec_ and 24 to 64 bytes in base64")
	}
	return secret, nil
}

// secrets are those that sign at a time.
type secrets struct {
	newest, former []byte // former: nil for none
	sealed         string // the newest as it is stored
}

// secrets reads the secrets of a webhook. It returns apierr.WebhookNotFound.
func (s *Service) secrets(ctx context.Context, q store.Querier, id string, now store.Time) (secrets, error) {
	var found secrets
	var former string
	var until *store.Time
	err := q.QueryRow(ctx, selectSecrets, id).Scan(&found.sealed, &former, &until)
	if errors.Is(err, store.ErrNotFound) {
		return found, apierr.WebhookNotFound
	}
	if err != nil {
		return found, fmt.Errorf("read the secrets of a webhook: %w", err)
	}
	if found.newest, err = s.db.Unseal(webhooksTable, secretColumn, id, found.sealed); err != nil {
		return found, err
	}
	if former != "" && until != nil && now < *until {
		found.former, err = s.db.Unseal(webhooksTable, formerColumn, id, former)
	}
	return found, err
}

// Signatures returns the value of the header webhook-signature: one signature for each secret. seconds is webhook-timestamp.
func Signatures(id string, seconds int64, body []byte, secrets ...[]byte) string {
	var list []string
	for _, secret := range secrets {
		if len(secret) == 0 {
			continue
		}
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.", id, strconv.FormatInt(seconds, 10))
		mac.Write(body)
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(list, " ")
}
