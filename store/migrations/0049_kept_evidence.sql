-- +goose Up

-- What showed that people are related, after it has ended: users of a persona, and relations between personas. It counts when a
-- second person decides. Rows hold ids only.
CREATE TABLE former_persona_users (
	persona_id TEXT   NOT NULL REFERENCES personas (id),
	user_id    TEXT   NOT NULL REFERENCES users (id),
	until      BIGINT NOT NULL,
	PRIMARY KEY (persona_id, user_id)
);
CREATE INDEX former_persona_users_user_idx ON former_persona_users (user_id, persona_id);

CREATE TABLE former_persona_links (
	persona_id        TEXT   NOT NULL REFERENCES personas (id),
	linked_persona_id TEXT   NOT NULL REFERENCES personas (id),
	until             BIGINT NOT NULL,
	PRIMARY KEY (persona_id, linked_persona_id)
);
CREATE INDEX former_persona_links_linked_idx ON former_persona_links (linked_persona_id, persona_id);

CREATE INDEX persona_names_name_idx ON persona_names (last_name_key, first_name_key, persona_id);
CREATE INDEX former_identities_name_idx ON former_identities (last_name_key, first_name_key, user_id);

-- Keyed digests of former display names and user names of users, and of their former validated addresses.
CREATE TABLE former_marks (
	user_id TEXT   NOT NULL REFERENCES users (id),
	kind    TEXT   NOT NULL CHECK (kind = 'name' OR kind = 'address'),
	digest  TEXT   NOT NULL,
	until   BIGINT NOT NULL,
	PRIMARY KEY (user_id, kind, digest)
);

-- Keyed digests of former e-mail addresses and phone numbers of customers.
CREATE TABLE customer_addresses (
	customer_id TEXT   NOT NULL REFERENCES customers (id),
	digest      TEXT   NOT NULL,
	until       BIGINT NOT NULL,
	PRIMARY KEY (customer_id, digest)
);
CREATE INDEX customer_addresses_digest_idx ON customer_addresses (digest, customer_id);
CREATE INDEX customer_identities_name_idx ON customer_identities (name_hash, customer_id);
CREATE INDEX customers_phone_idx ON customers (phone) WHERE phone IS NOT NULL;

-- The users who are no second person for a decision, as found when it was proposed.
CREATE TABLE kyc_decision_exclusions (
	decision_id TEXT NOT NULL REFERENCES kyc_decisions (id),
	user_id     TEXT NOT NULL,
	reason      TEXT NOT NULL CHECK (reason = 'customer' OR reason = 'linked' OR reason = 'proposer'),
	PRIMARY KEY (decision_id, user_id)
);
CREATE INDEX kyc_decision_exclusions_user_idx ON kyc_decision_exclusions (user_id, reason, decision_id);

-- The documents that a decision is about, as JSON; empty for a decision from before. And when something about the customer changed
-- since, without making the decision void.
ALTER TABLE kyc_decisions ADD COLUMN documents TEXT NOT NULL DEFAULT '';
ALTER TABLE kyc_decisions ADD COLUMN changed_at BIGINT;

-- +goose Down

ALTER TABLE kyc_decisions DROP COLUMN changed_at;
ALTER TABLE kyc_decisions DROP COLUMN documents;
DROP TABLE kyc_decision_exclusions;
DROP INDEX customers_phone_idx;
DROP INDEX customer_identities_name_idx;
DROP TABLE customer_addresses;
DROP TABLE former_marks;
DROP INDEX former_identities_name_idx;
DROP INDEX persona_names_name_idx;
DROP TABLE former_persona_links;
DROP TABLE former_persona_users;
