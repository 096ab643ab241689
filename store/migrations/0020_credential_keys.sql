-- +goose Up

-- The rules by which credentials.value_key was made for every row. A start with newer rules makes the keys anew.
CREATE TABLE credential_key_rules (
	version    INTEGER NOT NULL PRIMARY KEY,
	applied_at BIGINT  NOT NULL
);

-- +goose Down
DROP TABLE credential_key_rules;
