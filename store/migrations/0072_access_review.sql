-- +goose Up

-- When a held role or a grant was last used, by the hour. right_id is the id of a row of reviewed_rights.
CREATE TABLE right_uses (
	right_id TEXT   NOT NULL PRIMARY KEY,
	used_at  BIGINT NOT NULL -- beginning of the hour
);

-- Who reviewed the rights of a user or a role, and when.
CREATE TABLE access_reviews (
	id         TEXT   NOT NULL PRIMARY KEY,
	user_id    TEXT,
	role_id    TEXT,
	role_name  TEXT   NOT NULL, -- at that time; empty for a user
	decision   TEXT   NOT NULL,
	rights     BIGINT NOT NULL, -- roles and grants at that time
	remaining  BIGINT NOT NULL, -- roles and grants after it
	created_at BIGINT NOT NULL,
	created_by TEXT   NOT NULL,
	CONSTRAINT access_reviews_holder_check CHECK ((user_id IS NULL) <> (role_id IS NULL)),
	CONSTRAINT access_reviews_decision_check CHECK (decision = 'keep' OR decision = 'remove')
);
CREATE INDEX access_reviews_created_at_idx ON access_reviews (created_at, id);
CREATE INDEX access_reviews_user_id_idx ON access_reviews (user_id, created_at, id);
CREATE INDEX access_reviews_role_id_idx ON access_reviews (role_id, created_at, id);

-- Published by directory: the roles that users hold now or later, and who gave them.
CREATE VIEW assigned_roles AS SELECT user_id, role_id, created_at, created_by, starts_at, expires_at, in_force FROM user_roles;

-- The newest of all, in the order of the review. The expression is the id of reviewed_rights.
CREATE INDEX user_roles_created_at_idx ON user_roles (created_at, (CAST(user_id || ':' || role_id AS TEXT)));

-- Published by rbac: the roles of users, and the grants of users and roles. The casts give both parts the same types: otherwise SQLite
-- reads them whole before it sorts and searches.
CREATE VIEW reviewed_rights AS
SELECT CAST(a.user_id || ':' || a.role_id AS TEXT) AS id, 'role' AS kind, a.user_id AS user_id, a.role_id AS role_id, n.name AS role_name,
	n.name_key AS role_name_key, CAST(NULL AS TEXT) AS grant_id, CAST(NULL AS TEXT) AS rec_type, CAST(NULL AS TEXT) AS rec_id,
	CAST('' AS TEXT) AS permissions, CAST(NULL AS TEXT) AS endpoint,
	a.created_at AS created_at, a.created_by AS created_by, a.starts_at AS starts_at, a.expires_at AS expires_at, a.in_force AS in_force,
	(SELECT u.used_at FROM right_uses u WHERE u.right_id = CAST(a.user_id || ':' || a.role_id AS TEXT) AND u.used_at > a.created_at - 3600000) AS last_used_at,
	(SELECT MAX(v.created_at) FROM access_reviews v WHERE v.user_id = a.user_id) AS reviewed_at
FROM assigned_roles a LEFT JOIN roles n ON n.id = a.role_id
UNION ALL
SELECT g.id, CASE WHEN g.endpoint IS NOT NULL THEN 'endpoint' WHEN g.rec_id IS NOT NULL THEN 'record' ELSE 'type' END, g.user_id, g.role_id,
	CAST(COALESCE(n.name, '') AS TEXT), CAST(COALESCE(n.name_key, '') AS TEXT), g.id, g.rec_type, g.rec_id, g.permissions, g.endpoint,
	g.created_at, g.created_by, g.starts_at, g.expires_at, g.in_force,
	(SELECT u.used_at FROM right_uses u WHERE u.right_id = g.id),
	CASE WHEN g.user_id IS NOT NULL THEN (SELECT MAX(v.created_at) FROM access_reviews v WHERE v.user_id = g.user_id)
		ELSE (SELECT MAX(v.created_at) FROM access_reviews v WHERE v.role_id = g.role_id) END
FROM grant_records g LEFT JOIN roles n ON n.id = g.role_id;

-- +goose Down

DROP VIEW reviewed_rights;
DROP INDEX user_roles_created_at_idx;
DROP VIEW assigned_roles;
DROP TABLE access_reviews;
DROP TABLE right_uses;
