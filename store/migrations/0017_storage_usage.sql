-- +goose Up

-- What users have stored, kept in the transaction of each change: customers, documents, personas, payers, chats, messages
-- and tasks. bytes is what their texts take, with a fixed amount for each record.
CREATE TABLE storage_usage (
	user_id TEXT   NOT NULL PRIMARY KEY,
	records BIGINT NOT NULL,
	bytes   BIGINT NOT NULL
);

INSERT INTO storage_usage (user_id, records, bytes)
SELECT owner, COUNT(*), SUM(size) FROM (
	SELECT created_by AS owner, 256 + LENGTH(metadata) AS size FROM customers
	UNION ALL SELECT c.created_by, 256 + LENGTH(d.number_sealed) FROM kyc_documents d JOIN customers c ON c.id = d.customer_id
	UNION ALL SELECT created_by, 256 + LENGTH(metadata) FROM personas
	UNION ALL SELECT created_by, 256 + LENGTH(metadata) FROM payers
	UNION ALL SELECT created_by, 256 + LENGTH(metadata) FROM chats
	UNION ALL SELECT sender_id, 256 + LENGTH(content) + LENGTH(metadata) FROM chat_messages
	UNION ALL SELECT created_by, 256 + LENGTH(description) + LENGTH(metadata) FROM tasks
) AS stored
GROUP BY owner;

-- +goose Down
DROP TABLE storage_usage;
