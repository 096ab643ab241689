-- +goose Up

-- The assignees stand in the row of their task, so that a task is read in one step; they and the metadata, with the logs,
-- as the JSON that the API shows. The two weights follow from the assignees.
CREATE TABLE tasks (
	id               TEXT    NOT NULL PRIMARY KEY,
	customer_id      TEXT    NOT NULL REFERENCES customers (id),
	title            TEXT    NOT NULL,
	title_key        TEXT    NOT NULL,
	category         TEXT    NOT NULL,
	description      TEXT    NOT NULL,
	is_urgent        BOOLEAN NOT NULL,
	status           TEXT    NOT NULL,
	given_weight     BIGINT  NOT NULL, -- what counts while there are no assignees
	weight           BIGINT  NOT NULL,
	performed_weight BIGINT  NOT NULL,
	assignees        TEXT    NOT NULL,
	metadata         TEXT    NOT NULL,
	created_at       BIGINT  NOT NULL,
	created_by       TEXT    NOT NULL,
	updated_at       BIGINT  NOT NULL,
	updated_by       TEXT    NOT NULL,
	version          BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT tasks_category_check CHECK (category = 'sign' OR category = 'approve' OR category = 'update' OR category = 'delete'),
	CONSTRAINT tasks_status_check CHECK (
		status = 'pending' OR status = 'in_progress' OR status = 'completed' OR status = 'canceled' OR
		status = 'declined'),
	CONSTRAINT tasks_weight_check CHECK (given_weight >= 0 AND weight >= performed_weight AND performed_weight >= 0)
);
CREATE INDEX tasks_customer_id_idx ON tasks (customer_id, created_at, id);
CREATE INDEX tasks_status_idx ON tasks (customer_id, status, created_at, id);
CREATE INDEX tasks_created_by_idx ON tasks (created_by, created_at, id);

-- Whose tasks they are: of those who made them and of those who are assigned to them.
CREATE TABLE task_members (
	task_id    TEXT   NOT NULL REFERENCES tasks (id),
	user_id    TEXT   NOT NULL REFERENCES users (id),
	created_at BIGINT NOT NULL, -- of the task
	PRIMARY KEY (task_id, user_id)
);
CREATE INDEX task_members_user_id_idx ON task_members (user_id, created_at, task_id);

-- +goose Down
DROP TABLE task_members;
DROP TABLE tasks;
