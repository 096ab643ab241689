package notifications

import "kontor/modules/kit/list"

// due are the ids of deliveries of channel $1 whose time has come, or whose lease has run out, at $2. Each state is read
// from the beginning of its own index.
const due = `
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
	selectDue = due

	claimDue = `
	UPDATE deliveries
	SET status = 'sending', attempts = attempts + 1, lease_until = $4, leased_by = $5, version = version + 1
	WHERE id IN (` + due + `)
	RETURNING ` + claimedColumns

	// What is not held any more has been taken over by another.
	held = ` WHERE id = $1 AND status = 'sending' AND leased_by = $2 AND attempts = $3`

	// A gateway has it: nothing of it is kept here but that it was sent.
	finishSent = `
	UPDATE deliveries
	SET status = 'sent', sent_at = $4, text = '', html = '', subject = CASE WHEN secret THEN '' ELSE subject END,
		last_error = NULL, next_attempt_at = NULL, lease_until = NULL, leased_by = NULL, version = version + 1` + held

	finishFailed = `
	UPDATE deliveries
	SET status = $4, last_error = $5, next_attempt_at = $6, lease_until = NULL, leased_by = NULL, version = version + 1` + held

	// One process works on a directory: what another holds is held by nobody.
	freeLeases = `
	UPDATE deliveries
	SET status = 'retrying', next_attempt_at = $1, lease_until = NULL, leased_by = NULL, version = version + 1
	WHERE channel = $2 AND status = 'sending'`

	// A channel has lost its gateway: the local outbox keeps what waits.
	keepLocally = `
	UPDATE deliveries
	SET status = 'sent', sent_at = $1, next_attempt_at = NULL, lease_until = NULL, leased_by = NULL, version = version + 1
	WHERE channel = $2 AND status IN ('queued', 'retrying', 'sending')`

	retryDead = `
	UPDATE deliveries
	SET status = 'queued', attempts = 0, next_attempt_at = $2, version = version + 1
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	retryDeadLocally = `
	UPDATE deliveries
	SET status = 'sent', sent_at = $2, next_attempt_at = NULL, version = version + 1
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	selectDelivery = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE id = $1`

	countWaiting = `
	SELECT COUNT(*), COALESCE(MIN(created_at), 0) FROM deliveries
	WHERE channel = $1 AND status IN ('queued', 'retrying', 'sending')`

	countDead = `SELECT COUNT(*) FROM deliveries WHERE channel = $1 AND status = 'dead'`
)

// scanClaimed reads a delivery with what the API does not show.
func scanClaimed(row list.Row) (Delivery, error) {
	var html string
	var secret bool
	d, err := scanDelivery(appended{row, []any{&html, &secret}})
	d.HTML, d.Secret = html, secret
	return d, err
}

// appended reads further columns behind those of a scanner.
type appended struct {
	list.Row
	more []any
}

func (a appended) Scan(dest ...any) error { return a.Row.Scan(append(dest, a.more...)...) }
