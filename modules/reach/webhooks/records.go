package webhooks

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/outbound"
	"kontor/modules/kit/records"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The states of a webhook.
const (
	active   = "active"
	paused   = "paused"
	disabled = "disabled"
)

// The reasons for which Kontor changes the status.
const (
	reasonFailing = "failing"
	reasonGone    = "gone"
)

// Webhook is an address that receives events.
type Webhook struct {
	ID            string      `json:"id"`
	AccountID     string      `json:"account_id" doc:"The service account or user whose rights decide which events are sent."`
	URL           string      `json:"url" example:"https://hooks.example/kontor"`
	Description   string      `json:"description" example:"Back office"`
	Types         []string    `json:"types" example:"customers.*" doc:"Types of events, or patterns such as customers.*; empty for all."`
	IncludeRecord bool        `json:"include_record" doc:"Whether events carry the record as it is when they are sent."`
	Status        string      `json:"status" enum:"active,paused,disabled" doc:"A paused webhook continues where it stopped. A disabled one has answered 410 Gone."`
	Reason        string      `json:"reason" enum:"failing,gone," doc:"Why Kontor has paused or disabled it; empty if it has not."`
	FailingSince  *store.Time `json:"failing_since" doc:"The first failed call since the last success."`
	DeliveredAt   *store.Time `json:"delivered_at" doc:"The last success."`
	FormerUntil   *store.Time `json:"former_secret_until" doc:"Until then, calls are also signed with the secret before."`
	CreatedAt     store.Time  `json:"created_at"`
	CreatedBy     string      `json:"created_by"`
	ModifiedAt    store.Time  `json:"modified_at"`
	ModifiedBy    string      `json:"modified_by"`

	version int64
}

// ETag names the state of the record.
func (w Webhook) ETag() string { return endpoint.VersionTag(w.version) }

// EachUser names the account, the creator and the last editor.
func (w Webhook) EachUser(add func(id string)) {
	add(w.AccountID)
	add(w.CreatedBy)
	add(w.ModifiedBy)
}

// NewSecret is a webhook with a new secret.
type NewSecret struct {
	Webhook
	Secret string `json:"secret" example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" doc:"Verifies the signatures. It is not shown again."`
}

const webhooksTable = "webhooks"

const columns = `
	id, account_id, url, description, types, include_record, status, reason, former_until, created_at, created_by, modified_at, modified_by, version,
	(SELECT p.failing_since FROM webhook_progress p WHERE p.webhook_id = webhooks.id),
	(SELECT p.delivered_at FROM webhook_progress p WHERE p.webhook_id = webhooks.id)`

func scan(row records.Row) (Webhook, error) {
	var w Webhook
	var types string
	err := row.Scan(&w.ID, &w.AccountID, &w.URL, &w.Description, &types, &w.IncludeRecord, &w.Status, &w.Reason, &w.FormerUntil,
		&w.CreatedAt, &w.CreatedBy, &w.ModifiedAt, &w.ModifiedBy, &w.version, &w.FailingSince, &w.DeliveredAt)
	w.Types = split(types)
	return w, err
}

// split returns the parts of a stored list.
func split(stored string) []string {
	if stored == "" {
		return []string{}
	}
	return strings.Split(stored, ",")
}

// table holds the webhooks as records. An account may see and change its own.
var table = records.Table[Webhook]{
	Type: access.Webhooks, From: webhooksTable, Columns: columns, Scan: scan, Missing: apierr.WebhookNotFound,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read | access.Update | access.Delete, SQL: "account_id = $1"}},
	Record: func(w Webhook) store.Record {
		version := w.version
		w.FailingSince, w.DeliveredAt = nil, nil
		return store.Record{Answer: w, Stored: stored{version}}
	},
}

// stored holds what the API does not show of a row.
type stored struct {
	Version int64 `json:"version"`
}

// Proofs returns how the audit trail digests the records of this module. The digests do not cover the secrets, which are sealed for
// their row, nor how far the deliveries have come.
func Proofs() []records.Proof {
	p := table.Proof()
	p.Migration = 35
	p.Changes = &store.ChangeRule{Omit: []string{"modified_at", "modified_by", "failing_since", "delivered_at", "former_secret_until"}}
	p.Outside = map[string]string{"failing_since": "null", "delivered_at": "null"}
	return []records.Proof{p}
}

var webhookList = list.New(list.Source[Webhook]{
	From: webhooksTable, Columns: columns, ID: "id", Created: "created_at", Tables: []string{webhooksTable}, Scan: scan,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "account_id", Type: list.UUID, Column: "account_id"},
		{Name: "description", Type: list.Text, Column: "description"},
		{Name: "status", Type: list.Text, Column: "status", Key: "status"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
	},
})

const (
	insertWebhook = `
		INSERT INTO webhooks (id, account_id, url, description, types, include_record, status, reason, secret, created_at, created_by, modified_at, modified_by)
		VALUES ($1, $2, $3, $4, $5, $6, 'active', '', $7, $8, $9, $8, $9)`

	insertProgress = `INSERT INTO webhook_progress (webhook_id, cursor, failures, not_before) VALUES ($1, $2, 0, 0)`

	countOf = `SELECT COUNT(*) FROM webhooks WHERE account_id = $1`

	updateWebhook = `
		UPDATE webhooks SET url = $2, description = $3, types = $4, include_record = $5, status = $6, reason = $7, modified_at = $8, modified_by = $9,
			version = version + 1
		WHERE id = $1`

	updateSecrets = `
		UPDATE webhooks SET secret = $2, former_secret = $3, former_until = $4, modified_at = $5, modified_by = $6, version = version + 1 WHERE id = $1`

	selectSecrets = `SELECT secret, former_secret, former_until FROM webhooks WHERE id = $1`

	deleteDeliveries = `DELETE FROM webhook_deliveries WHERE webhook_id = $1`
	deleteProgress   = `DELETE FROM webhook_progress WHERE webhook_id = $1`
	deleteWebhook    = `DELETE FROM webhooks WHERE id = $1`
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

const (
	maxDescription = 200
	// maxOverlap is the longest time, in hours, for which the secret before still signs.
	maxOverlap     = 168
	defaultOverlap = 24
)

// CreateInput describes a new webhook.
type CreateInput struct {
	AccountID     string   `json:"account_id" required:"false" doc:"The account whose rights decide which events are sent: the caller, or a service account as which the caller may act. Without it: the caller."`
	URL           string   `json:"url" maxLength:"2000" example:"https://hooks.example/kontor" doc:"An https:// address on the internet, or one in webhooks.allowed_networks."`
	Description   string   `json:"description" required:"false" maxLength:"200" example:"Back office"`
	Types         []string `json:"types" required:"false" maxItems:"100" example:"customers.*" doc:"Types of events, or patterns such as customers.*; without it: all."`
	IncludeRecord bool     `json:"include_record" required:"false" doc:"Send the record with each event."`
}

// Validate checks what does not depend on the settings.
func (in *CreateInput) Validate(v *apierr.Fields) {
	in.URL = strings.TrimSpace(in.URL)
	checkURL(v, in.URL)
	in.Description = validate.Text(v, "description", in.Description, maxDescription)
}

func checkURL(v *apierr.Fields, address string) {
	if address == "" {
		v.Add("url", "invalid.required")
	} else if _, err := outbound.Parse(address); err != nil {
		v.Add("url", "invalid."+err.Error())
	}
}

// UpdateInput changes a webhook. Missing members stay as they are.
type UpdateInput struct {
	ID            string                      `path:"id"`
	URL           *string                     `json:"url" maxLength:"2000" example:"https://hooks.example/kontor"`
	Description   *string                     `json:"description" maxLength:"200"`
	Types         endpoint.Optional[[]string] `json:"types" maxItems:"100" nullable:"false" example:"customers.*" doc:"Empty for all."`
	IncludeRecord *bool                       `json:"include_record"`
	Status        *string                     `json:"status" enum:"active,paused" doc:"active also resumes a webhook that Kontor has paused or disabled."`
}

// Validate checks the given members.
func (in *UpdateInput) Validate(v *apierr.Fields) {
	if in.URL != nil {
		*in.URL = strings.TrimSpace(*in.URL)
		checkURL(v, *in.URL)
	}
	if in.Description != nil {
		*in.Description = validate.Text(v, "description", *in.Description, maxDescription)
	}
	if in.Status != nil {
		validate.OneOf(v, "status", *in.Status, active, paused)
	}
}

// RotateInput replaces a secret.
type RotateInput struct {
	ID      string `path:"id"`
	Overlap *int   `json:"overlap_hours" required:"false" minimum:"0" maximum:"168" default:"24" doc:"For how long calls are also signed with the secret before; 0 if it has leaked."`
}

// Validate checks the overlap.
func (in *RotateInput) Validate(v *apierr.Fields) {
	if in.Overlap == nil {
		in.Overlap = new(int)
		*in.Overlap = defaultOverlap
	} else if *in.Overlap < 0 || *in.Overlap > maxOverlap {
		v.Add("overlap_hours", "invalid.range", apierr.Args{"Min": 0, "Max": maxOverlap})
	}
}

// ReplayInput sends events again.
type ReplayInput struct {
	ID    string     `path:"id"`
	Since store.Time `json:"since" doc:"The events since then are sent again, under the same ids, if the account may still read their records."`
}

// Validate checks that there is a time.
func (in *ReplayInput) Validate(v *apierr.Fields) {
	if in.Since <= 0 && !v.Has("since") {
		v.Add("since", "invalid.required")
	}
}

// checkSettings checks what depends on the settings: forbidden addresses, and types of events.
func (s *Service) checkSettings(address *string, types []string) error {
	var problems apierr.Fields
	if address != nil {
		if err := s.client.CheckURL(*address); err != nil {
			problems.Add("url", "invalid."+err.Error())
		}
	}
	for i, pattern := range types {
		if !s.feed.ValidPattern(pattern) {
			problems.Add(fmt.Sprintf("types.%d", i), "invalid.event_type", apierr.Args{"Type": pattern})
		}
	}
	return problems.Err()
}

// storedTypes returns the stored form of types: sorted, without repetitions.
func storedTypes(types []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(types))), ",")
}
