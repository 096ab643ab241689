-- +goose Up

-- Who a user was by a persona that he has taken from himself, or given another name: he is still that person when it
-- comes to deciding about customers.
CREATE TABLE former_identities (
	user_id        TEXT   NOT NULL REFERENCES users (id),
	first_name_key TEXT   NOT NULL,
	last_name_key  TEXT   NOT NULL,
	date_of_birth  TEXT   NOT NULL,
	until          BIGINT NOT NULL,
	PRIMARY KEY (user_id, first_name_key, last_name_key, date_of_birth)
);

-- +goose Down
DROP TABLE former_identities;
