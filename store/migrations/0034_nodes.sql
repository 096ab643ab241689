-- +goose Up

-- How many event streams a user has open on a node, when several nodes share the database. The rows of a node count while it is
-- alive.
CREATE TABLE open_streams (
	user_id TEXT   NOT NULL,
	node_id TEXT   NOT NULL,
	streams BIGINT NOT NULL,
	PRIMARY KEY (user_id, node_id)
);
CREATE INDEX open_streams_node_id_idx ON open_streams (node_id);

-- The time of the newest event of all nodes, in one row. The times of events increase in the order of the commits, also when the
-- newest event was deleted.
CREATE TABLE notice_clock (
	id     BIGINT NOT NULL PRIMARY KEY,
	latest BIGINT NOT NULL,
	CONSTRAINT notice_clock_id_check CHECK (id = 1)
);

-- Certificates, the account at the certificate authority and the answers to its challenges, when several nodes share the
-- database. Otherwise they are files in the data directory.
CREATE TABLE certificates (
	name           TEXT   NOT NULL PRIMARY KEY,
	content_sealed TEXT   NOT NULL,
	modified_at    BIGINT NOT NULL
);

-- +goose Down

DROP TABLE certificates;
DROP TABLE notice_clock;
DROP TABLE open_streams;
