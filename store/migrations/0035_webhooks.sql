-- +goose Up

-- Addresses that receive the events of the change feed. The rights are those of the account. The secrets are sealed.
CREATE TABLE webhooks (
	id             TEXT    NOT NULL PRIMARY KEY,
	account_id     TEXT    NOT NULL REFERENCES users (id),
	url            TEXT    NOT NULL,
	description    TEXT    NOT NULL,
	types          TEXT    NOT NULL, -- types or patterns, separated by commas; empty: all
	include_record BOOLEAN NOT NULL,
	status         TEXT    NOT NULL,
	reason         TEXT    NOT NULL, -- why Kontor has changed the status; empty: it has not
	secret         TEXT    NOT NULL,
	former_secret  TEXT    NOT NULL DEFAULT '', -- signs as well until former_until
	former_until   BIGINT,
	created_at     BIGINT  NOT NULL,
	created_by     TEXT    NOT NULL,
	modified_at    BIGINT  NOT NULL,
	modified_by    TEXT    NOT NULL,
	version        BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT webhooks_status_check CHECK (status = 'active' OR status = 'paused' OR status = 'disabled')
);
CREATE INDEX webhooks_account_id_idx ON webhooks (account_id, created_at, id);
CREATE INDEX webhooks_created_at_idx ON webhooks (created_at, id);

-- How far the delivery to a webhook has come. It changes often and without an audit entry.
CREATE TABLE webhook_progress (
	webhook_id    TEXT   NOT NULL PRIMARY KEY REFERENCES webhooks (id),
	cursor        TEXT   NOT NULL, -- events up to it have deliveries
	failures      BIGINT NOT NULL, -- since the last success
	failing_since BIGINT,          -- the first of these
	not_before    BIGINT NOT NULL, -- no call before this time
	delivered_at  BIGINT           -- the last success
);

-- One event for one webhook. There is no data of records in it.
CREATE TABLE webhook_deliveries (
	id              TEXT   NOT NULL PRIMARY KEY,
	webhook_id      TEXT   NOT NULL REFERENCES webhooks (id),
	event_id        TEXT   NOT NULL,
	type            TEXT   NOT NULL,
	rec_type        TEXT   NOT NULL,
	rec_id          TEXT   NOT NULL,
	rec_version     BIGINT NOT NULL, -- the order of the events of a record
	action          TEXT   NOT NULL,
	actor           TEXT   NOT NULL,
	event_at        BIGINT NOT NULL,
	status          TEXT   NOT NULL,
	attempts        BIGINT NOT NULL DEFAULT 0,
	response_status BIGINT,
	last_error      TEXT   NOT NULL DEFAULT '',
	duration_ms     BIGINT,
	next_attempt_at BIGINT, -- NULL: finished
	lease_until     BIGINT NOT NULL DEFAULT 0,
	leased_by       TEXT   NOT NULL DEFAULT '',
	created_at      BIGINT NOT NULL,
	finished_at     BIGINT,
	CONSTRAINT webhook_deliveries_event_id_key UNIQUE (webhook_id, event_id)
);
CREATE INDEX webhook_deliveries_created_at_idx ON webhook_deliveries (webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_finished_at_idx ON webhook_deliveries (finished_at);
-- What waits, in its order, and what an earlier event of the same record holds back.
CREATE INDEX webhook_deliveries_open_idx ON webhook_deliveries (webhook_id, rec_version) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_record_idx ON webhook_deliveries (webhook_id, rec_id, rec_type, rec_version) WHERE next_attempt_at IS NOT NULL;

-- +goose Down

DROP TABLE webhook_deliveries;
DROP TABLE webhook_progress;
DROP TABLE webhooks;
