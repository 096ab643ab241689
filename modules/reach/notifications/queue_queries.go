package notifications

// selectDue selects the ids of at most $2 deliveries of a channel that are due at $1, or whose lease has expired then. Each state is read
// from the beginning of its own index.
const selectDue = `
	SELECT id FROM (
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $3 AND status = 'queued' AND next_attempt_at <= $1 ORDER BY next_attempt_at, id LIMIT $2) AS fresh
		UNION ALL
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $3 AND status = 'retrying' AND next_attempt_at <= $1 ORDER BY next_attempt_at, id LIMIT $2) AS failed
		UNION ALL
		SELECT * FROM (SELECT id, lease_until AS at FROM deliveries
			WHERE channel = $3 AND status = 'sending' AND lease_until <= $1 ORDER BY lease_until, id LIMIT $2) AS abandoned
	) AS due
	ORDER BY at, id
	LIMIT $2`

const (
	setSent = `status = 'sent', sent_at = $1, text = '', html = '', sealed = '', subject = CASE WHEN secret THEN '' ELSE subject END,
		last_error = NULL, next_attempt_at = NULL`

	setFailed = `status = $1, last_error = $2, next_attempt_at = $3`

	// Without a gateway the waiting deliveries of a channel stay in the local outbox.
	moveToLocalOutbox = `
	UPDATE deliveries
	SET status = 'sent', attempts = attempts + 1, sent_at = $1, next_attempt_at = NULL
	WHERE channel = $2 AND status IN ('queued', 'retrying')`

	retryDead = `
	UPDATE deliveries
	SET status = 'queued', attempts = 0, next_attempt_at = $2
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	retryDeadLocally = `
	UPDATE deliveries
	SET status = 'sent', attempts = 1, sent_at = $2, next_attempt_at = NULL
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	selectDelivery = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE id = $1`

	countWaiting = `
	SELECT COUNT(*), COALESCE(MIN(created_at), 0) FROM deliveries
	WHERE channel = $1 AND status IN ('queued', 'retrying', 'sending')`

	countDead = `SELECT COUNT(*) FROM deliveries WHERE channel = $1 AND status = 'dead'`
)
