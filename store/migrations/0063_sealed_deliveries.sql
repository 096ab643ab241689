-- +goose Up

-- One-time codes and secret links are sealed until a gateway has them. The text and html of such a row are empty.
ALTER TABLE deliveries ADD COLUMN sealed TEXT NOT NULL DEFAULT '';
-- What earlier versions have written in plain text, and nodes of the version before during an upgrade. It is sealed soon.
CREATE INDEX deliveries_plain_idx ON deliveries (id) WHERE secret = TRUE AND text <> '';

-- +goose Down
DROP INDEX deliveries_plain_idx;
ALTER TABLE deliveries DROP COLUMN sealed;
