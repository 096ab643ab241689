-- +goose Up

-- Lists of the console as users have saved them.
CREATE TABLE list_views (
	id          TEXT   NOT NULL PRIMARY KEY,
	user_id     TEXT   NOT NULL REFERENCES users (id),
	list        TEXT   NOT NULL, -- path of the list in the console
	name        TEXT   NOT NULL,
	query       TEXT   NOT NULL, -- of the list's address: filters, order, columns, rows of a page
	created_at  BIGINT NOT NULL,
	modified_at BIGINT NOT NULL,
	CONSTRAINT list_views_name_key UNIQUE (user_id, list, name)
);

-- +goose Down
DROP TABLE list_views;
