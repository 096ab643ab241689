package notifications

// selectDue selects the ids of deliveries of channel $1 that are due at $2, or whose lease has expired then. Each state is
// read from the beginning of its own index.
const selectDue = `
	SELECT id FROM (
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $1 AND status = 'queued' AND next_attempt_at <= $2 ORDER BY next_attempt_at, id LIMIT $3) AS fresh
		UNION ALL
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $1 AND status = 'retrying' AND next_attempt_at <= $2 ORDER BY next_attempt_at, id LIMIT $3) AS failed
		UNION ALL
		SELECT * FROM (SELECT id, lease_until AS at FROM deliveries
			WHERE channel = $1 AND status = 'sending' AND lease_until <= $2 ORDER BY lease_until, id LIMIT $3) AS abandoned
	) AS due
	ORDER BY at, id
	LIMIT $3`

const (
	claimDue = `
	UPDATE deliveries
	SET status = 'sending', attempts = attempts + 1, lease_until = $4, leased_by = $5, version = version + 1
	WHERE id IN (` + selectDue + `)
	RETURNING ` + claimedColumns

	// whereLeased excludes deliveries whose lease has expired and that another attempt took over.
	whereLeased = ` WHERE id = $1 AND status = 'sending' AND leased_by = $2 AND attempts = $3`

	// The gateway has the text; only the fact that it was sent is kept.
	finishSent = `
	UPDATE deliveries
	SET status = 'sent', sent_at = $4, text = '', html = '', subject = CASE WHEN secret THEN '' ELSE subject END,
		last_error = NULL, next_attempt_at = NULL, lease_until = NULL, leased_by = NULL, version = version + 1` + whereLeased

	// The node lost the database before the attempt began.
	giveBack = `
	UPDATE deliveries
	SET status = 'retrying', attempts = attempts - 1, next_attempt_at = $4, lease_until = NULL, leased_by = NULL, version = version + 1` + whereLeased

	finishFailed = `
	UPDATE deliveries
	SET status = $4, last_error = $5, next_attempt_at = $6, lease_until = NULL, leased_by = NULL, version = version + 1` + whereLeased

	// Without other nodes every lease is stale at the start.
	releaseAllLeases = `
	UPDATE deliveries
	SET status = 'retrying', next_attempt_at = $1, lease_until = NULL, leased_by = NULL, version = version + 1
	WHERE status = 'sending'`

	// releaseLeasesOf is followed by ids of nodes and a closing bracket.
	releaseLeasesOf = releaseAllLeases + ` AND leased_by IN (`

	// Without a gateway the waiting deliveries of a channel stay in the local outbox.
	moveToLocalOutbox = `
	UPDATE deliveries
	SET status = 'sent', attempts = attempts + 1, sent_at = $1, next_attempt_at = NULL, version = version + 1
	WHERE channel = $2 AND status IN ('queued', 'retrying')`

	retryDead = `
	UPDATE deliveries
	SET status = 'queued', attempts = 0, next_attempt_at = $2, version = version + 1
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	retryDeadLocally = `
	UPDATE deliveries
	SET status = 'sent', attempts = 1, sent_at = $2, next_attempt_at = NULL, version = version + 1
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	selectDelivery = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE id = $1`

	countWaiting = `
	SELECT COUNT(*), COALESCE(MIN(created_at), 0) FROM deliveries
	WHERE channel = $1 AND status IN ('queued', 'retrying', 'sending')`

	countDead = `SELECT COUNT(*) FROM deliveries WHERE channel = $1 AND status = 'dead'`
)
