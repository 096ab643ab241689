-- +goose Up

-- A link counts, and gives rights, from the time at which it was accepted: at once when staff entered it or the user did,
-- otherwise when the user confirms it.
ALTER TABLE persona_users ADD COLUMN accepted_at BIGINT;
UPDATE persona_users SET accepted_at = created_at
WHERE created_by = user_id
	OR created_by = '00000000-0000-0000-0000-000000000000'
	OR created_by IN (SELECT r.user_id FROM user_roles r WHERE r.role_id = '0193b000-0000-7000-8000-000000000001')
	OR created_by IN (SELECT g.principal_id FROM grants g
		WHERE g.rec_type = 'personas' AND g.permission = 'update' AND g.rec_id = '')
	OR created_by IN (SELECT r.user_id FROM user_roles r JOIN grants g ON g.principal_id = r.role_id
		WHERE g.rec_type = 'personas' AND g.permission = 'update' AND g.rec_id = '');

-- A relation that carries trust, such as a legal representative, counts from the time at which it was accepted.
ALTER TABLE persona_links ADD COLUMN accepted_at BIGINT;
UPDATE persona_links SET accepted_at = created_at;

-- Who a persona was before somebody gave it another name or date of birth.
CREATE TABLE persona_names (
	persona_id     TEXT    NOT NULL REFERENCES personas (id),
	first_name_key TEXT    NOT NULL,
	last_name_key  TEXT    NOT NULL,
	date_of_birth  TEXT    NOT NULL,
	until          BIGINT  NOT NULL,
	renamed_by     TEXT    NOT NULL,
	by_staff       BOOLEAN NOT NULL,
	PRIMARY KEY (persona_id, first_name_key, last_name_key, date_of_birth, renamed_by)
);

-- +goose Down
DROP TABLE persona_names;
ALTER TABLE persona_links DROP COLUMN accepted_at;
ALTER TABLE persona_users DROP COLUMN accepted_at;
