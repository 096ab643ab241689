package oidc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const identityColumns = "id, user_id, issuer, subject, email, created_at, created_by, last_used_at, trusted_from"

func scanIdentity(row records.Row) (Identity, error) {
	var i Identity
	var trusted store.Time
	err := row.Scan(&i.ID, &i.UserID, &i.Issuer, &i.Subject, &i.Email, &i.CreatedAt, &i.CreatedBy, &i.LastUsedAt, &trusted)
	if trusted > 0 {
		i.TrustedFrom = &trusted
	}
	return i, err
}

var identityTable = records.Table[Identity]{
	Type: access.Identities, From: "identities", Columns: identityColumns, Scan: scanIdentity,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read | access.Delete, SQL: "user_id = $1"}},
	Missing:   apierr.IdentityNotFound,
}

var identityList = list.New(list.Source[Identity]{
	From: "identities", Columns: identityColumns, ID: "id", Created: "created_at", Tables: []string{"identities"}, Scan: scanIdentity,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "issuer", Type: list.Text, Column: "issuer"},
		{Name: "subject", Type: list.Text, Column: "subject"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at", Null: true},
	},
})

const (
	insertIdentityRow = `
		INSERT INTO identities (id, user_id, issuer, subject, email, created_at, created_by, trusted_from)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	selectIdentityRow = `SELECT ` + identityColumns + ` FROM identities WHERE issuer = $1 AND subject = $2`

	selectOnTrial = `SELECT ` + identityColumns + ` FROM identities WHERE user_id = $1 AND trusted_from > $2 ORDER BY id`

	selectTrusted = `SELECT 1 FROM identities WHERE user_id = $1 AND issuer = $2 AND trusted_from <= $3 LIMIT 1`

	countIdentities = `SELECT count(*) FROM identities WHERE user_id = $1`

	updateIdentityUse = `UPDATE identities SET last_used_at = $2 WHERE id = $1`

	deleteIdentityRow = `DELETE FROM identities WHERE id = $1`

	insertState = `INSERT INTO oidc_states (state_hash, expires_at) VALUES ($1, $2)`

	insertCode = `
		INSERT INTO oidc_codes (code_hash, browser_hash, purpose, user_id, data, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`

	selectCode = `SELECT browser_hash, user_id, data, expires_at FROM oidc_codes WHERE code_hash = $1 AND purpose = $2`

	deleteCode = `DELETE FROM oidc_codes WHERE code_hash = $1`

	// The codes of an identity that was deleted are useless, too; they are few and of one user.
	deleteCodesOf = `DELETE FROM oidc_codes WHERE user_id = $1`

	purgeStates = `
		DELETE FROM oidc_states WHERE state_hash IN (SELECT state_hash FROM oidc_states WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`

	purgeCodes = `
		DELETE FROM oidc_codes WHERE code_hash IN (SELECT code_hash FROM oidc_codes WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`

	selectStatus = `SELECT status FROM people WHERE id = $1`

	selectHeldRoles = `SELECT role_id FROM held_roles WHERE user_id = $1 ORDER BY role_id`

	selectRoleByName = `SELECT id FROM role_names WHERE name_key = $1`

	selectOwnerOfEmail = `
		SELECT user_id FROM user_credentials WHERE value_key = $1 AND type = 'email' AND validated = TRUE`
)

// selectIdentity returns the identity of a subject, or store.ErrNotFound.
func selectIdentity(ctx context.Context, q store.Querier, issuer, subject string) (Identity, error) {
	return scanIdentity(q.QueryRow(ctx, selectIdentityRow, issuer, subject))
}

// selectText returns the text that a statement selects, or an empty one.
func selectText(ctx context.Context, q store.Querier, statement string, arg any) (text string, err error) {
	err = q.QueryRow(ctx, statement, arg).Scan(&text)
	return text, store.Optional(err)
}

// selectRoleID returns the id of a role by its name, or an empty text. Everyone is none that the setting could give or take.
func selectRoleID(ctx context.Context, q store.Querier, name string) (string, error) {
	id, err := selectText(ctx, q, selectRoleByName, types.Fold(name))
	if err != nil {
		return "", fmt.Errorf("find a role: %w", err)
	}
	if id == access.Everyone {
		return "", nil
	}
	return id, nil
}

// isActiveStaff reports whether a user is active, and whether they are staff. exists is false for an unknown id.
func (s *Service) isActiveStaff(ctx context.Context, q store.Querier, userID string) (exists, active, staff bool, err error) {
	status, err := selectText(ctx, q, selectStatus, userID)
	if err != nil || status == "" {
		return false, false, false, err
	}
	policy := s.options.Policy.Load()
	roles, err := store.All(ctx, q, store.Text, selectHeldRoles, userID)
	return true, status == "active", policy.Staff(userID) || slices.ContainsFunc(roles, policy.Staff), err
}

// Proofs returns how the audit trail digests identities. The digests do not cover the last use, which is in the entry of the
// session. One-time codes and states expire within minutes.
func Proofs() []records.Proof { return []records.Proof{identityProof} }

var identityProof = records.Proof{
	Type: identityTable.Type.Name, From: "identities", Key: "id", Read: readIdentity, Outside: map[string]string{"last_used_at": "null"},
	Changes: &store.ChangeRule{Omit: []string{"last_used_at"}, Forget: true},
}

// readIdentity reads an identity for a digest, without the last use.
func readIdentity(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	i, err := scanIdentity(q.QueryRow(ctx, `SELECT `+identityColumns+` FROM identities WHERE id = $1`, id))
	i.LastUsedAt = nil
	return store.Record{Answer: i}, err
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "identities", Holds: "the accounts of a user at the provider, with the e-mail address at the time of linking", Sections: []string{"identities"}},
		{Name: "oidc_codes", Holds: "what the provider has stated about a user, for minutes", Unexported: "It lives for minutes, within one sign-in."},
		{Name: "oidc_states", Why: "It holds hashes of random values, for minutes."},
	}
}

const selectIdentityIDs = `SELECT id FROM identities WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

// PersonalSections declares the accounts of a user at the provider.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Records(personal.About{Name: "identities", Kind: personal.User, Endpoint: "GET /v1/users/{id}/identities"},
			personal.Of[Identity]{Table: &identityTable, All: access.Read, Condition: "identities.user_id = $2"}),
	}
}

// ErasePerson deletes the accounts of a user at the provider, and pending sign-ins.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor,
		personal.Once(func(ctx context.Context, tx *store.Tx) error { return tx.Run(ctx, deleteCodesOf, subject.ID) }),
		personal.EachID(selectIdentityIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return identityProof.ChangeRow(ctx, tx, personal.Action, id, deleteIdentityRow, id)
		}))
}

// OnTrial returns the identities of a user that are on trial.
func (s *Service) OnTrial(ctx context.Context, q store.Querier, userID string) ([]signin.Method, error) {
	found, err := store.All(ctx, q, scanIdentity, selectOnTrial, userID, q.Now())
	if err != nil {
		return nil, err
	}
	methods := make([]signin.Method, len(found))
	for i, row := range found {
		methods[i] = signin.Method{Kind: signin.Identity, ID: row.ID, UserID: userID, TrustedFrom: *row.TrustedFrom}
	}
	return methods, nil
}

// Drop deletes an identity.
func (s *Service) Drop(ctx context.Context, tx *store.Tx, m signin.Method, announce bool) error {
	row, err := identityTable.GetUnchecked(ctx, tx, m.ID)
	if errors.Is(err, apierr.IdentityNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.delete(ctx, tx, row); err != nil || !announce {
		return err
	}
	return s.outbox.CredentialRemoved(ctx, tx, row.UserID, s.Name(), "")
}

// CanProve reports whether a user has an account at the provider that is not on trial.
func (s *Service) CanProve(ctx context.Context, q store.Querier, userID string) (bool, error) {
	if s.provider == nil {
		return false, nil
	}
	return store.Exists(ctx, q, selectTrusted, userID, s.options.Issuer, q.Now())
}

// ProveAgain uses the one-time code of another sign-in of a user at the provider. It returns apierr.OIDCInvalidCode, and
// apierr.MethodOnTrial for an identity on trial.
func (s *Service) ProveAgain(ctx context.Context, userID, code string) error {
	var refused error
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		refused = apierr.OIDCInvalidCode
		owner, st, valid, err := s.useCode(ctx, tx, forProof, code)
		if err != nil || !valid || owner != userID {
			return err // committed without an error: the code is void
		}
		linked, err := identityTable.GetUnchecked(ctx, tx, st.Identity)
		switch {
		case errors.Is(err, apierr.IdentityNotFound):
			return nil
		case err != nil:
			return err
		case linked.UserID != userID:
			return nil
		}
		if refused = nil; linked.onTrial(tx.Now()) {
			refused = apierr.MethodOnTrial.With(apierr.Args{"Time": linked.TrustedFrom.String()}).Detail("until", *linked.TrustedFrom)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return refused
}
