package factors

import (
	"context"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const columns = `
	id, user_id, type, name, status, created_at, last_used_at, version, trusted_from,
	(SELECT count(*) FROM recovery_codes WHERE factor_id = factors.id AND used_at IS NULL)`

func scanFactor(row records.Row) (Factor, error) {
	var f Factor
	var remaining int
	var trusted store.Time
	err := row.Scan(&f.ID, &f.UserID, &f.Type, &f.Name, &f.Status, &f.CreatedAt, &f.LastUsedAt, &f.version, &trusted, &remaining)
	if trusted > 0 {
		f.TrustedFrom = &trusted
	}
	if f.Type == RecoveryCodes {
		f.Remaining = &remaining
	}
	return f, err
}

// table holds the factors as records. They belong to their user, not to their creator.
var table = &records.Table[Factor]{
	Type:      access.Factors,
	From:      "factors",
	Columns:   columns,
	Scan:      scanFactor,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read | access.Update | access.Delete, SQL: "user_id = $1"}},
	Missing:   apierr.FactorNotFound,
}

var factorList = list.New(list.Source[Factor]{
	From:    "factors",
	Columns: columns,
	ID:      "id",
	Created: "created_at",
	Tables:  []string{"factors"},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "type", Type: list.Text, Column: "type", Key: "type"},
		{Name: "name", Type: list.Text, Column: "name", Key: "name_key"},
		{Name: "status", Type: list.Text, Column: "status", Key: "status"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at", Null: true},
	},
	Scan: scanFactor,
})

const (
	insertFactor = `
		INSERT INTO factors (id, user_id, type, name, name_key, status, created_at, created_by, secret_sealed, session_id, trusted_from)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

	updateName = `UPDATE factors SET name = $2, name_key = $3, version = version + 1 WHERE id = $1`

	deleteFactor = `DELETE FROM factors WHERE id = $1`
	deleteCodes  = `DELETE FROM recovery_codes WHERE factor_id = $1`

	selectOfUser = `SELECT ` + columns + ` FROM factors WHERE user_id = $1 ORDER BY created_at, id`

	selectNamed = `SELECT 1 FROM factors WHERE user_id = $1 AND name_key = $2 AND id <> $3`

	selectExpired = `SELECT ` + columns + ` FROM factors WHERE status = 'pending' AND created_at <= $1 ORDER BY created_at, id LIMIT $2`

	// An attempt counts before it is evaluated. Only the session that began the enrolment has attempts.
	countAttempt = `
		UPDATE factors SET attempts = attempts + 1
		WHERE id = $1 AND status = 'pending' AND session_id = $2 AND created_at > $3 AND attempts < $4`

	selectSecret = `SELECT secret_sealed FROM factors WHERE id = $1`

	activateTOTP = `
		UPDATE factors SET status = 'active', last_step = $3, session_id = '', trusted_from = $2, version = version + 1
		WHERE id = $1 AND status = 'pending'`

	activatePasskey = `
		UPDATE factors SET
			status = 'active', trusted_from = $2, credential_id = $3, public_key = $4, transports = $5, aaguid = $6,
			backup_eligible = $7, backed_up = $8, sign_count = $9, session_id = '', version = version + 1
		WHERE id = $1 AND status = 'pending'`

	insertCode = `INSERT INTO recovery_codes (factor_id, code_hash) VALUES ($1, $2)`

	selectTOTP = `SELECT id, secret_sealed, last_step, trusted_from FROM factors WHERE user_id = $1 AND type = 'totp' AND status = 'active'`

	selectCodesOf = `SELECT id, trusted_from FROM factors WHERE user_id = $1 AND type = 'recovery_codes' AND status = 'active'`

	selectCode = `SELECT code_hash FROM recovery_codes WHERE factor_id = $1 AND used_at IS NULL AND code_hash IN (`

	passkeyColumns = `id, user_id, credential_id, public_key, transports, aaguid, backup_eligible, backed_up, sign_count, trusted_from`

	selectPasskeys = `
		SELECT ` + passkeyColumns + ` FROM factors
		WHERE user_id = $1 AND type = 'passkey' AND status = 'active' ORDER BY created_at, id`

	selectOwner = `SELECT user_id FROM factors WHERE credential_id = $1 AND status = 'active'`

	// held_roles is a view of the directory.
	selectInUse = `
		SELECT 1 FROM factors JOIN held_roles ON held_roles.user_id = factors.user_id
		WHERE factors.status = 'active' AND factors.type <> 'recovery_codes' AND held_roles.role_id IN (`

	// A code is accepted once: its time step must be later than that of the last accepted code.
	useTOTP = `
		UPDATE factors SET last_step = $2, last_used_at = $3
		WHERE id = $1 AND status = 'active' AND last_step < $2`

	// The counter must grow, unless the authenticator has none and always sends 0.
	usePasskey = `
		UPDATE factors SET sign_count = $2, backed_up = $3, last_used_at = $4
		WHERE id = $1 AND status = 'active' AND (sign_count < $2 OR (sign_count = 0 AND $2 = 0))`

	useCode = `UPDATE recovery_codes SET used_at = $3 WHERE factor_id = $1 AND code_hash = $2 AND used_at IS NULL`

	touchCodes = `UPDATE factors SET last_used_at = $2, version = version + 1 WHERE id = $1`

	// A secret that is not sealed with the newest key, and its replacement.
	selectOldSecrets = `
		SELECT id, id, secret_sealed FROM factors
		WHERE secret_sealed <> '' AND secret_sealed NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`

	updateSecret = `UPDATE factors SET secret_sealed = $3 WHERE id = $1 AND secret_sealed = $2`

	// people and user_credentials are views of the directory.
	selectStatus = `SELECT status FROM people WHERE id = $1`

	selectPerson = `
		SELECT people.display_name,
			COALESCE(min(CASE WHEN user_credentials.type = 'email' THEN user_credentials.value END), min(user_credentials.value), '')
		FROM people LEFT JOIN user_credentials ON user_credentials.user_id = people.id AND user_credentials.validated = TRUE
		WHERE people.id = $1 GROUP BY people.id, people.display_name`
)

// newFactor is a factor to insert, with the columns of its enrolment.
type newFactor struct {
	Factor
	createdBy string
	secret    string // sealed
	session   string
}

func insert(ctx context.Context, tx *store.Tx, f newFactor) error {
	var trusted store.Time
	if f.TrustedFrom != nil {
		trusted = *f.TrustedFrom
	}
	return tx.Run(ctx, insertFactor, f.ID, f.UserID, f.Type, f.Name, types.Fold(f.Name), f.Status, f.CreatedAt, f.createdBy,
		f.secret, f.session, trusted)
}

// ofUser returns all factors of a user, pending ones included.
func ofUser(ctx context.Context, q store.Querier, userID string) ([]Factor, error) {
	return store.All(ctx, q, scanFactor, selectOfUser, userID)
}

// isSecond reports whether a factor is active and can complete a sign-in by itself. Recovery codes only stand in for one.
func isSecond(f Factor) bool { return f.Status == active && f.Type != RecoveryCodes }

// userStatus returns the status of a user, or apierr.UserNotFound.
func userStatus(ctx context.Context, q store.Querier, userID string) (status string, err error) {
	err = q.QueryRow(ctx, selectStatus, userID).Scan(&status)
	return status, records.OrMissing(err, apierr.UserNotFound)
}

// nameTaken reports whether another factor of the user has the name.
func nameTaken(ctx context.Context, q store.Querier, f Factor) (bool, error) {
	return store.Exists(ctx, q, selectNamed, f.UserID, types.Fold(f.Name), f.ID)
}

// passkey is a stored passkey.
type passkey struct {
	id, userID     string
	credentialID   string // base64url
	publicKey      string // base64url of the COSE key
	transports     []string
	aaguid         string
	backupEligible bool
	backedUp       bool
	signCount      int64
	trustedFrom    store.Time
}

// amr returns how the passkey counts for a session: one that its vendor synchronises is a key in software.
func (p passkey) amr() []string {
	if p.backupEligible {
		return amrSoftware
	}
	return amrHardware
}

func scanPasskey(row records.Row) (passkey, error) {
	var p passkey
	var transports string
	err := row.Scan(&p.id, &p.userID, &p.credentialID, &p.publicKey, &transports, &p.aaguid, &p.backupEligible, &p.backedUp, &p.signCount, &p.trustedFrom)
	p.transports = strings.Fields(transports)
	return p, err
}

// Proofs returns how the audit trail digests factors with their recovery codes. The digests do not cover the last use, the
// counter and the backup state of a passkey, the time step of an authenticator app, and the enrolment of a pending factor. The
// secret of an authenticator app is sealed for its row, which protects it as well.
func Proofs() []records.Proof { return []records.Proof{proof} }

var proof = records.Proof{
	Type: access.Factors.Name, From: "factors", Key: "id", Read: readFactor, Outside: map[string]string{"last_used_at": "null"},
}

const (
	selectStored = `
		SELECT created_by, COALESCE(credential_id, ''), public_key, transports, aaguid, backup_eligible FROM factors WHERE id = $1`

	selectCodes = `SELECT code_hash, used_at FROM recovery_codes WHERE factor_id = $1 ORDER BY code_hash`
)

// storedFactor holds what the API does not show.
type storedFactor struct {
	Version        int64        `json:"version"`
	CreatedBy      string       `json:"created_by"`
	CredentialID   string       `json:"credential_id"`
	PublicKey      string       `json:"public_key"`
	Transports     string       `json:"transports"`
	AAGUID         string       `json:"aaguid"`
	BackupEligible bool         `json:"backup_eligible"`
	Codes          []storedCode `json:"codes"`
}

type storedCode struct {
	Hash   string      `json:"code_hash"`
	UsedAt *store.Time `json:"used_at"`
}

func readFactor(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	f, err := scanFactor(q.QueryRow(ctx, `SELECT `+columns+` FROM factors WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	f.LastUsedAt = nil
	s := storedFactor{Version: f.version}
	err = q.QueryRow(ctx, selectStored, id).Scan(&s.CreatedBy, &s.CredentialID, &s.PublicKey, &s.Transports, &s.AAGUID, &s.BackupEligible)
	if err == nil && f.Type == RecoveryCodes {
		s.Codes, err = store.All(ctx, q, func(row records.Row) (c storedCode, err error) {
			err = row.Scan(&c.Hash, &c.UsedAt)
			return c, err
		}, selectCodes, id)
	}
	return store.Record{Answer: f, Stored: s}, err
}

// auditNew writes an entry about a new factor.
func auditNew(ctx context.Context, tx *store.Tx, action, actor, id string) error {
	return proof.AuditEntry(ctx, tx, store.AuditEntry{Actor: actor, Action: action, RecType: proof.Type, RecID: id})
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "factors", Holds: "names, types and keys of the second factors of a user; keys and secrets are not exported", Sections: []string{"factors"}},
		{Name: "recovery_codes", Holds: "hashes of recovery codes; they are not exported", Unexported: "A hash of a secret must not leave the system."},
	}
}

const (
	selectFactorIDs = `SELECT id FROM factors WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// PersonalSections declares the second factors of a user.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Records(personal.About{Name: "factors", Kind: personal.User, Endpoint: "GET /v1/users/{id}/factors"}, personal.Of[Factor]{
			Table: table, All: access.Read, Condition: "factors.user_id = $2",
			Current: func(f Factor, now store.Time) bool {
				return f.Status == active || f.CreatedAt > now.Add(-enrolmentLife)
			},
		}),
	}
}

// ErasePerson deletes the second factors of a user.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.EachID(selectFactorIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
		return s.delete(ctx, tx, id, personal.Actor(ctx), personal.Action)
	}))
}
