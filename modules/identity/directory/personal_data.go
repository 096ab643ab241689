package directory

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "users", Holds: "display name, language and last sign-in of a user", Sections: []string{"user"}},
		{Name: "credentials", Holds: "e-mail addresses, phone numbers and user names", Sections: []string{"credentials"}},
		{Name: "otps", Holds: "keyed hashes of the one-time codes of a credential", Unexported: "A hash of a secret must not leave the system."},
		{Name: "otp_sends", Holds: "keyed hashes of the addresses to which codes were sent", Unexported: "Digests say nothing to their subject."},
		{Name: "former_marks", Holds: "keyed digests of former names and addresses of a user, which are not exported", Unexported: "Digests say nothing to their subject."},
		{Name: "user_roles", Holds: "the roles of a user", Sections: []string{"user"}},
		{Name: "invitations", Why: "It holds people who are not users yet. A row ends with the acceptance, the withdrawal, or 30 days after it expired."},
		{Name: "credential_key_rules", Why: "It holds a version number."},
	}
}

// PersonalSections declares a user with roles, and credentials.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Records(personal.About{Name: "user", Kind: personal.User, Endpoint: "GET /v1/users/{id}"}, personal.Of[User]{
			Table: &userTable, All: access.Read, Condition: "users.id = $2",
			Show: func(ctx context.Context, q store.Querier, u User) (any, error) { return withRoles(ctx, q, u, nil) },
		}),
		personal.Records(personal.About{Name: "credentials", Kind: personal.User, Endpoint: "GET /v1/users/{id}/credentials"},
			personal.Of[Credential]{Table: &credentialTable, All: access.Read, Condition: "credentials.user_id = $2"}),
	}
}

const (
	eraseUser = `
		UPDATE users SET
			display_name = '', display_name_key = '', display_name_skeleton = '', display_name_order = '', status = 'disabled', language = 'en', last_login_at = NULL,
			modified_at = $2, modified_by = $3, version = version + 1, erased_at = $2
		WHERE id = $1 AND erased_at IS NULL`

	selectCredentialIDs = `SELECT id FROM credentials WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	deleteSends = `DELETE FROM otp_sends WHERE target = $1`

	deleteRoles = `DELETE FROM user_roles WHERE user_id = $1`

	selectErased = `SELECT erased_at IS NOT NULL FROM users WHERE id = $1`
)

// notErased returns apierr.RecordErased for a user whose personal data was erased.
func notErased(ctx context.Context, q store.Querier, userID string) error {
	var erased bool
	err := q.QueryRow(ctx, selectErased, userID).Scan(&erased)
	if err == nil && erased {
		return apierr.RecordErased
	}
	return err
}

// AllowUser checks for other modules that the caller has a permission on a user. It returns apierr.UserNotFound and
// apierr.NoAccess.
func (s *Service) AllowUser(ctx context.Context, q store.Querier, id string, wanted access.Permission) error {
	_, err := userTable.Get(ctx, q, id, wanted)
	return err
}

// CheckErasable returns apierr.UserNotFound, and apierr.LastAdministrator for the last active administrator.
func (s *Service) CheckErasable(ctx context.Context, tx *store.Tx, userID string) error {
	u, err := userTable.GetUnchecked(ctx, tx, userID)
	if err != nil {
		return err
	}
	return s.keepAdministrator(ctx, tx, u)
}

// ErasePerson erases a user: first the record, with the end of all sessions, then credentials and roles.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor,
		personal.Once(func(ctx context.Context, tx *store.Tx) error { return s.eraseRecord(ctx, tx, subject.ID) }),
		personal.EachID(selectCredentialIDs, subject.ID, s.eraseCredential),
		personal.Once(func(ctx context.Context, tx *store.Tx) error { return tx.Run(ctx, deleteMarks, subject.ID) }))
}

func (s *Service) eraseRecord(ctx context.Context, tx *store.Tx, id string) error {
	if err := accountProof.ChangeRow(ctx, tx, personal.Action, id, eraseUser, id, tx.Now(), personal.Actor(ctx)); err != nil {
		return err
	}
	if err := userRolesProof.ChangeRow(ctx, tx, personal.Action, id, deleteRoles, id); err != nil {
		return err
	}
	s.changed(tx, id)
	return s.auth.EndSessions(ctx, tx, id, "")
}

func (s *Service) eraseCredential(ctx context.Context, tx *store.Tx, id string) error {
	c, err := credentialTable.GetUnchecked(ctx, tx, id)
	if err != nil {
		return err
	}
	for _, purpose := range []string{"target", "target for " + forValidation, "target for " + forRecovery} {
		if err := tx.Run(ctx, deleteSends, s.subject(purpose, c.target())); err != nil {
			return err
		}
	}
	return credentialProof.Change(ctx, tx, personal.Action, id, func() error { return tx.RunEach(ctx, id, deleteOTP, deleteCredential) })
}

// Proofs returns how the audit trail digests the records of this module: users, credentials and held roles. The digests do not
// cover the last sign-in, which is in the entry of its session, keys that are derived from names, one-time codes, and the
// counts of sent codes.
func Proofs() []records.Proof {
	return []records.Proof{accountProof, credentialProof, userRolesProof}
}

var accountProof = records.Proof{
	Type: userTable.Type.Name, From: "users", Key: "id", Read: readAccount, Outside: map[string]string{"roles": "[]", "last_login_at": "null"},
	Changes: &store.ChangeRule{Omit: []string{"modified_at", "roles", "last_login_at"}},
}

const selectAuthors = `SELECT created_by, modified_by FROM users WHERE id = $1`

// storedUser holds the columns of a user that the API does not show.
type storedUser struct {
	Version    int64  `json:"version"`
	CreatedBy  string `json:"created_by"`
	ModifiedBy string `json:"modified_by"`
}

// readAccount reads a user for a digest, without roles and last sign-in.
func readAccount(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	u, err := scanUser(q.QueryRow(ctx, `SELECT `+userColumns+` FROM users WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	u.LastLoginAt = nil
	s := storedUser{Version: u.version}
	err = q.QueryRow(ctx, selectAuthors, id).Scan(&s.CreatedBy, &s.ModifiedBy)
	return store.Record{Answer: u, Stored: s}, err
}

var credentialProof = records.Proof{
	Type: credentialTable.Type.Name, From: "credentials", Key: "id", Read: readCredential, Changes: &store.ChangeRule{Forget: true},
}

const selectCredentialAuthor = `SELECT created_by FROM credentials WHERE id = $1`

// storedCredential holds the columns of a credential that the API does not show.
type storedCredential struct {
	Key         string     `json:"value_key"`
	Version     int64      `json:"version"`
	CreatedBy   string     `json:"created_by"`
	TrustedFrom store.Time `json:"trusted_from"`
}

func readCredential(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	c, err := scanCredential(q.QueryRow(ctx, `SELECT `+credentialColumns+` FROM credentials WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedCredential{Key: c.key, Version: c.version, TrustedFrom: c.trustedFrom}
	err = q.QueryRow(ctx, selectCredentialAuthor, id).Scan(&s.CreatedBy)
	return store.Record{Answer: c, Stored: s}, err
}
