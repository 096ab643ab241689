package users

import (
	"context"
	"errors"

	"kontor/modules/list"
	"kontor/modules/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/store"
)

// Credential is what a user is known by: an e-mail address, a phone number or a user name.
type Credential struct {
	ID          string      `json:"id"`
	UserID      string      `json:"user_id"`
	Type        string      `json:"type" enum:"email,phone,username"`
	Value       string      `json:"value" example:"anna.keller@example.ch"`
	Validated   bool        `json:"validated"`
	ValidatedAt *store.Time `json:"validated_at"`
	CreatedAt   store.Time  `json:"created_at"`

	key     string
	version int64
}

// ETag names the state of the record.
func (c Credential) ETag() string { return endpoint.VersionTag(c.version) }

// maxCredentials bounds what one user may have, and with it whom he can have codes sent to.
const maxCredentials = 10

// newCredential gives the credential that will be stored. A user name has nowhere to send a code to and counts as
// validated at once.
func newCredential(userID string, id identifier) Credential {
	return Credential{ID: store.NewID(), UserID: userID, Type: id.kind, Value: id.value, key: id.key, version: 1,
		Validated: channel(id.kind) == ""}
}

// insert stores a credential, in the place of an old claim of the same value if there is one. It returns
// fault.CredentialExists.
func (s *Service) insert(ctx context.Context, tx *store.Tx, c *Credential, by string) error {
	if err := s.releaseClaim(ctx, tx, c.key, by); err != nil {
		return err
	}
	c.CreatedAt = tx.Now()
	if c.Validated {
		now := tx.Now()
		c.ValidatedAt = &now
	}
	_, err := tx.Exec(ctx, insertCredential, c.ID, c.UserID, c.Type, c.Value, c.key, c.Validated, c.ValidatedAt, c.CreatedAt, by)
	if errors.Is(err, store.ErrDuplicate) {
		return fault.CredentialExists.Because(err)
	}
	if err != nil {
		return err
	}
	return credentialProof.AuditEntry(ctx, tx, store.AuditEntry{Actor: by, Action: "credentials.create", RecType: credentialProof.Type, RecID: c.ID})
}

// releaseClaim takes a value from an account that claimed it and did not validate it in time.
func (s *Service) releaseClaim(ctx context.Context, tx *store.Tx, key, by string) error {
	old, err := scanCredential(tx.QueryRow(ctx, selectOldClaim, key, tx.Now().Add(-s.OTPLife)))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.remove(ctx, tx, old, by); err != nil {
		return err
	}
	disabled, err := tx.Exec(ctx, disableEmptyUser, old.UserID, tx.Now(), by)
	if err != nil || disabled == 0 {
		return err
	}
	err = accountProof.AuditEntry(ctx, tx, store.AuditEntry{Actor: by, Action: "users.abandon", RecType: accountProof.Type, RecID: old.UserID})
	if err != nil {
		return err
	}
	if err := s.auth.EndSessions(ctx, tx, old.UserID, ""); err != nil {
		return err
	}
	s.auth.Changed(tx, old.UserID)
	return nil
}

func (s *Service) remove(ctx context.Context, tx *store.Tx, c Credential, by string) error {
	was, err := readCredential(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteOTP, c.ID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteCredential, c.ID); err != nil {
		return err
	}
	tx.Audit(store.AuditEntry{Actor: by, Action: "credentials.delete", RecType: access.Credentials.Name, RecID: c.ID, Before: was})
	return nil
}

// listCredentials lists the credentials of a user, for himself and for who may read credentials. It returns
// fault.UserNotFound and fault.NoAccess.
func (s *Service) listCredentials(ctx context.Context, in credentialsInput) (list.Page[Credential], error) {
	caller := access.From(ctx)
	if err := userExists(ctx, s.db, in.UserID); err != nil {
		return list.Page[Credential]{}, err
	}
	ofUser := list.Where{SQL: "user_id = $1", Args: []any{in.UserID}}
	if caller.UserID == in.UserID || caller.May(access.Credentials, access.Read) {
		return credentialList.Page(ctx, s.db, in.Query, ofUser)
	}
	page, err := credentialList.Page(ctx, s.db, in.Query, ofUser, held.Visible(caller))
	if err == nil && page.TotalUnfiltered == 0 {
		err = fault.NoAccess
	}
	return page, err
}

// addCredential gives a user a further credential and sends the code that validates it. It returns
// fault.UserNotFound, fault.NoAccess, fault.CredentialExists, fault.TooManyCredentials and fault.OTPSendLimited.
func (s *Service) addCredential(ctx context.Context, in addCredentialInput) (Credential, error) {
	caller := access.From(ctx)
	user, err := accounts.Any(ctx, s.db, in.UserID)
	if err != nil {
		return Credential{}, err
	}
	if caller.UserID != user.ID && !caller.May(access.Credentials, access.Create) {
		return Credential{}, fault.NoAccess
	}
	c := newCredential(user.ID, in.id)
	var code code
	if !c.Validated {
		code = s.prepareCode(c, user.Language, forValidation)
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, countCredentials, user.ID).Scan(&n); err != nil {
			return err
		}
		if n >= maxCredentials {
			return fault.TooManyCredentials.With(fault.Args{"Max": maxCredentials})
		}
		if err := s.insert(ctx, tx, &c, records.Actor(ctx)); err != nil {
			return err
		}
		if !c.Validated {
			if _, err := s.sendCode(ctx, tx, c.ID, c.key, code); err != nil {
				return err
			}
		}
		tx.Respond(created, c)
		return nil
	})
	return c, err
}

// deleteCredential deletes a credential, but not the last validated one of a user. It returns fault.UserNotFound for an
// unknown one, fault.NoAccess and fault.LastCredential.
func (s *Service) deleteCredential(ctx context.Context, in deleteCredentialInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := held.Get(ctx, tx, in.CredentialID, access.Delete)
		if err != nil {
			return err
		}
		if c.Validated {
			var validated int
			if err := tx.QueryRow(ctx, countValidated, c.UserID).Scan(&validated); err != nil {
				return err
			}
			if validated <= 1 {
				return fault.LastCredential
			}
		}
		return s.remove(ctx, tx, c, records.Actor(ctx))
	})
	return endpoint.Confirm(ctx, s.texts, "users.credential_deleted"), err
}
