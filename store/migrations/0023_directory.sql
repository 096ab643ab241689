-- +goose Up

-- Display names of users, and the views that modules publish to each other. A module names only its own tables and these
-- views in its statements.

ALTER TABLE users ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN display_name_key TEXT NOT NULL DEFAULT '';      -- folded, for searches
ALTER TABLE users ADD COLUMN display_name_skeleton TEXT NOT NULL DEFAULT ''; -- UTS #39, to find names that look alike
CREATE INDEX users_display_name_key_idx ON users (display_name_key, id);
CREATE INDEX users_display_name_skeleton_idx ON users (display_name_skeleton);

-- Published by directory: users as other modules may know them.
CREATE VIEW people AS SELECT id, display_name, status, language FROM users;

-- Published by directory: the roles that users hold.
CREATE VIEW held_roles AS SELECT user_id, role_id FROM user_roles;

-- Published by directory: the e-mail addresses, phone numbers and user names of users.
CREATE VIEW user_credentials AS
SELECT id, user_id, type, value, value_key, validated, trusted_from, created_at FROM credentials;

-- Published by rbac: permissions on a record (rec_id) or on a whole type (rec_id is empty).
CREATE VIEW permissions AS SELECT principal_id, rec_type, rec_id, permission FROM grants;

-- Published by rbac: the names of roles.
CREATE VIEW role_names AS SELECT id, name, name_key FROM roles;

-- +goose Down

DROP VIEW role_names;
DROP VIEW permissions;
DROP VIEW user_credentials;
DROP VIEW held_roles;
DROP VIEW people;
DROP INDEX users_display_name_skeleton_idx;
DROP INDEX users_display_name_key_idx;
ALTER TABLE users DROP COLUMN display_name_skeleton;
ALTER TABLE users DROP COLUMN display_name_key;
ALTER TABLE users DROP COLUMN display_name;
