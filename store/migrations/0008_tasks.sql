-- +goose Up

CREATE TABLE tasks (
	id          TEXT    NOT NULL PRIMARY KEY,
	customer_id TEXT    NOT NULL REFERENCES customers (id),
	title       TEXT    NOT NULL,
	title_key   TEXT    NOT NULL,
	category    TEXT    NOT NULL,
	description TEXT    NOT NULL,
	is_urgent   BOOLEAN NOT NULL,
	status      TEXT    NOT NULL,
	weight      BIGINT  NOT NULL, -- as given; what counts is the sum of the assignees' while there are some
	metadata    TEXT    NOT NULL, -- without the logs
	logs        TEXT    NOT NULL,
	created_at  BIGINT  NOT NULL,
	created_by  TEXT    NOT NULL,
	updated_at  BIGINT  NOT NULL,
	updated_by  TEXT    NOT NULL,
	version     BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT tasks_category_check CHECK (category IN ('sign', 'approve', 'update', 'delete')),
	CONSTRAINT tasks_status_check CHECK (status IN ('pending', 'in_progress', 'completed', 'canceled', 'declined')),
	CONSTRAINT tasks_weight_check CHECK (weight >= 0)
);
CREATE INDEX tasks_customer_id_idx ON tasks (customer_id, created_at, id);
CREATE INDEX tasks_status_idx ON tasks (customer_id, status, created_at, id);
CREATE INDEX tasks_created_by_idx ON tasks (created_by, created_at, id);

CREATE TABLE task_assignees (
	id          TEXT   NOT NULL PRIMARY KEY,
	task_id     TEXT   NOT NULL REFERENCES tasks (id),
	user_id     TEXT   NOT NULL REFERENCES users (id),
	name        TEXT   NOT NULL,
	status      TEXT   NOT NULL,
	weight      BIGINT NOT NULL,
	assigned_at BIGINT NOT NULL,
	assigned_by TEXT   NOT NULL,
	CONSTRAINT task_assignees_status_check CHECK (status IN ('assigned', 'accepted', 'completed', 'declined')),
	CONSTRAINT task_assignees_weight_check CHECK (weight >= 0),
	CONSTRAINT task_assignees_user_id_key UNIQUE (task_id, user_id)
);
CREATE INDEX task_assignees_user_id_idx ON task_assignees (user_id, task_id);

-- +goose Down
DROP TABLE task_assignees;
DROP TABLE tasks;
