package directory

const (
	upsertOTP = `
		INSERT INTO otps (credential_id, purpose, code_hash, attempts, consumed, expires_at, created_at)
		VALUES ($1, $2, $3, 0, FALSE, $4, $5)
		ON CONFLICT (credential_id) DO UPDATE SET
			purpose = excluded.purpose, code_hash = excluded.code_hash, attempts = 0, consumed = FALSE,
			expires_at = excluded.expires_at, created_at = excluded.created_at`

	tryOTP = `
		UPDATE otps SET attempts = attempts + 1, consumed = (code_hash = $3)
		WHERE credential_id = $1 AND purpose = $2 AND consumed = FALSE AND attempts < $4 AND expires_at > $5
		RETURNING consumed`

	selectLiveOTP = `
		SELECT attempts, expires_at FROM otps
		WHERE credential_id = $1 AND purpose = $2 AND consumed = FALSE`

	deleteOTP = `DELETE FROM otps WHERE credential_id = $1`
)

const deleteRecoveryOTPs = `
	DELETE FROM otps WHERE purpose = 'recovery'
		AND credential_id IN (SELECT id FROM credentials WHERE user_id = $1)`
