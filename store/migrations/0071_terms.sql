-- +goose Up

-- Grants and held roles that begin and end by themselves. Rights that are not in force are in none of the tables and views by which
-- access is decided: the table grants, the table endpoint_grants, the table external_grants and the view held_roles.
ALTER TABLE grant_records ADD COLUMN starts_at BIGINT;
ALTER TABLE grant_records ADD COLUMN expires_at BIGINT;
ALTER TABLE grant_records ADD COLUMN in_force BOOLEAN NOT NULL DEFAULT TRUE; -- FALSE: starts_at is not reached
ALTER TABLE grant_records ADD COLUMN warned BOOLEAN NOT NULL DEFAULT FALSE; -- both sides know that it ends soon
CREATE INDEX grant_records_starts_at_idx ON grant_records (starts_at, id) WHERE in_force = FALSE;
CREATE INDEX grant_records_expires_at_idx ON grant_records (expires_at, id) WHERE expires_at IS NOT NULL;

ALTER TABLE user_roles ADD COLUMN starts_at BIGINT;
ALTER TABLE user_roles ADD COLUMN expires_at BIGINT;
ALTER TABLE user_roles ADD COLUMN in_force BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE user_roles ADD COLUMN warned BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX user_roles_starts_at_idx ON user_roles (starts_at, user_id) WHERE in_force = FALSE;
CREATE INDEX user_roles_expires_at_idx ON user_roles (expires_at, user_id) WHERE expires_at IS NOT NULL;

-- Which roles does this user hold now? Each check of access asks.
CREATE INDEX user_roles_in_force_idx ON user_roles (user_id, role_id) WHERE in_force = TRUE;

DROP VIEW held_roles;
-- Published by directory: the roles that users hold now.
CREATE VIEW held_roles AS SELECT user_id, role_id FROM user_roles WHERE in_force = TRUE;

-- +goose Down

DROP VIEW held_roles;
DELETE FROM user_roles WHERE in_force = FALSE;
CREATE VIEW held_roles AS SELECT user_id, role_id FROM user_roles;
DROP INDEX user_roles_in_force_idx;
DROP INDEX user_roles_expires_at_idx;
DROP INDEX user_roles_starts_at_idx;
ALTER TABLE user_roles DROP COLUMN warned;
ALTER TABLE user_roles DROP COLUMN in_force;
ALTER TABLE user_roles DROP COLUMN expires_at;
ALTER TABLE user_roles DROP COLUMN starts_at;
DELETE FROM grant_records WHERE in_force = FALSE;
DROP INDEX grant_records_expires_at_idx;
DROP INDEX grant_records_starts_at_idx;
ALTER TABLE grant_records DROP COLUMN warned;
ALTER TABLE grant_records DROP COLUMN in_force;
ALTER TABLE grant_records DROP COLUMN expires_at;
ALTER TABLE grant_records DROP COLUMN starts_at;
