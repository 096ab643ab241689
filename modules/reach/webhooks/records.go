package webhooks

import (
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
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
