-- +goose Up

-- Counts of requests against stored rate-limit rules, for the nodes of a shared database. A row that has arrived equals a missing one.
CREATE TABLE rate_limit_counts (
	subject TEXT   NOT NULL PRIMARY KEY, -- keyed hash of the endpoint, the limit and the caller
	arrival BIGINT NOT NULL              -- theoretical arrival time of the next request, in Unix nanoseconds
);
CREATE INDEX rate_limit_counts_arrival_idx ON rate_limit_counts (arrival);

-- +goose Down
DROP TABLE rate_limit_counts;
