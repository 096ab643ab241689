package directory

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Credential identifies a user at sign-in: an e-mail address, a phone number or a user name.
type Credential struct {
	ID          string      `json:"id"`
	UserID      string      `json:"user_id"`
	Type        string      `json:"type" enum:"email,phone,username"`
	Value       string      `json:"value" example:"anna.keller@example.ch"`
	Validated   bool        `json:"validated"`
	ValidatedAt *store.Time `json:"validated_at"`
	CreatedAt   store.Time  `json:"created_at"`
	TrustedFrom *store.Time `json:"trusted_from" doc:"Until then the credential can neither recover the account nor replace an older method of sign-in; null for one that is not validated, or came with the account."`

	key         string // value_key; a claim of a taken value has a space and the id appended
	session     string // that added it; empty: of a registration, or of another user
	trustedFrom store.Time
	version     int64
}

// target returns the key of the value, without the id of a claim.
func (c Credential) target() string {
	key, _, _ := strings.Cut(c.key, " ")
	return key
}

// trust sets the time from which the credential is trusted.
func (c *Credential) trust(from store.Time) {
	if c.trustedFrom = from; from > 0 && from < never {
		c.TrustedFrom = &from
	}
}

// onTrial reports whether a credential is on trial (see the package signin).
func (c Credential) onTrial(now store.Time) bool { return now < c.trustedFrom && c.trustedFrom < never }

// ETag returns the validator of the record.
func (c Credential) ETag() string { return endpoint.VersionTag(c.version) }

// maxCredentials is the number of credentials of one user. It also limits the addresses to which a user can have codes sent.
const maxCredentials = 10

// newCredential returns a credential to store. User names are validated at once, because no code can be sent to them.
func newCredential(userID string, id identifier) Credential {
	return Credential{ID: store.NewID(), UserID: userID, Type: id.kind, Value: id.value, key: id.key, version: 1,
		Validated: channel(id.kind) == ""}
}

// insert stores a new credential. It replaces an old claim of the same value. It returns apierr.CredentialExists.
func (s *Service) insert(ctx context.Context, tx *store.Tx, c *Credential, by string) error {
	c.CreatedAt = tx.Now()
	if c.Validated {
		now := tx.Now()
		c.ValidatedAt = &now
	}
	return s.put(ctx, tx, *c, by)
}

// put stores a credential as it is.
func (s *Service) put(ctx context.Context, tx *store.Tx, c Credential, by string) error {
	if err := s.deleteOldClaim(ctx, tx, c.key, by); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, insertCredential, c.ID, c.UserID, c.Type, c.Value, c.key, c.Validated, c.ValidatedAt, c.CreatedAt, by, c.trustedFrom,
		types.NameSkeleton(c.Value), c.session)
	if errors.Is(err, store.ErrDuplicate) {
		return apierr.CredentialExists.Wrap(err)
	}
	if err != nil {
		return err
	}
	s.invalidate(tx, c.UserID)
	return credentialProof.AuditEntry(ctx, tx, store.AuditEntry{Actor: by, Action: "credentials.create", RecType: credentialProof.Type, RecID: c.ID})
}

// deleteOldClaim takes a value from an account that claimed it and did not validate it in time.
func (s *Service) deleteOldClaim(ctx context.Context, tx *store.Tx, key, by string) error {
	return s.deleteClaim(ctx, tx, key, tx.Now().Add(-s.OTPLife), by)
}

// deleteClaim deletes a claim of the value that was made until the given time. It disables the claiming user if they are
// pending and have no other credential.
func (s *Service) deleteClaim(ctx context.Context, tx *store.Tx, key string, until store.Time, by string) error {
	old, err := scanCredential(tx.QueryRow(ctx, selectOldClaim, key, until))
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
	s.changed(tx, old.UserID)
	return nil
}

func (s *Service) remove(ctx context.Context, tx *store.Tx, c Credential, by string) error {
	if err := s.keepCredential(ctx, tx, c); err != nil {
		return err
	}
	s.invalidate(tx, c.UserID)
	return credentialProof.ChangeBy(ctx, tx, by, "credentials.delete", c.ID, func() error { return tx.RunEach(ctx, c.ID, deleteOTP, deleteCredential) })
}

// listCredentials lists the credentials of a user. The caller is the user, or may read the credentials. It returns
// apierr.UserNotFound and apierr.NoAccess.
func (s *Service) listCredentials(ctx context.Context, in list.OfInput) (list.Page[Credential], error) {
	if err := userExists(ctx, s.db, in.ID); err != nil {
		return list.Page[Credential]{}, err
	}
	ofUser := list.Where{SQL: "user_id = $1", Args: []any{in.ID}}
	return credentialTable.PageOf(ctx, s.db, credentialList, in, ofUser)
}

// deleteCredential deletes a credential. The last validated credential of a user stays, and so do older ones while a new
// one is on trial. The message about the deletion has a link that restores the credential, if users delete one of their own. It returns
// apierr.UserNotFound for an unknown credential, apierr.NoAccess, apierr.LastCredential and apierr.CredentialTooNew.
func (s *Service) deleteCredential(ctx context.Context, in deleteCredentialInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := s.deletable(ctx, tx, in.CredentialID)
		if err != nil {
			return err
		}
		if !c.Validated {
			return s.remove(ctx, tx, c, records.Actor(ctx))
		}
		undo := ""
		if access.From(ctx).UserID == c.UserID && !c.onTrial(tx.Now()) {
			if undo, err = s.keepRemoved(ctx, tx, c); err != nil {
				return err
			}
		}
		// Before the deletion, so that the deleted address gets the message too.
		if err := s.outbox.CredentialRemoved(ctx, tx, c.UserID, masked(c), undo); err != nil {
			return err
		}
		return s.remove(ctx, tx, c, records.Actor(ctx))
	})
	return endpoint.Confirm(ctx, s.texts, "users.credential_deleted"), err
}

// deletable returns a credential that the caller may delete now.
func (s *Service) deletable(ctx context.Context, q store.Querier, id string) (Credential, error) {
	c, err := credentialTable.Get(ctx, q, id, access.Delete)
	if err != nil || !c.Validated {
		return c, err
	}
	return c, s.checkDeletable(ctx, q, c)
}

// checkDeletable returns apierr.LastCredential or apierr.CredentialTooNew for a validated credential that must stay.
func (s *Service) checkDeletable(ctx context.Context, q store.Querier, c Credential) error {
	var validated int
	if err := q.QueryRow(ctx, countValidated, c.UserID).Scan(&validated); err != nil {
		return err
	}
	if validated <= 1 {
		return apierr.LastCredential
	}
	var from store.Time
	if c.onTrial(q.Now()) {
		from = c.trustedFrom
	}
	err := s.auth.CheckRemoval(ctx, q, c.UserID, from)
	if errors.Is(err, apierr.OlderMethodKept) {
		kept := apierr.Of(err)
		return &apierr.Error{Kind: apierr.CredentialTooNew, Args: kept.Args, Details: kept.Details} // the code of earlier versions
	}
	return err
}

// OnTrial returns the credentials of a user that are on trial or not validated. New user names keep no other method from being
// removed: they cannot recover the account.
func (s *Service) OnTrial(ctx context.Context, q store.Querier, userID string) ([]signin.Method, error) {
	found, err := store.All(ctx, q, scanCredential, selectUntrustedOf, userID, q.Now(), never)
	if err != nil {
		return nil, err
	}
	methods := make([]signin.Method, len(found))
	for i, c := range found {
		methods[i] = signin.Method{Kind: signin.Credential, ID: c.ID, UserID: userID, TrustedFrom: c.trustedFrom, Harmless: channel(c.Type) == ""}
	}
	return methods, nil
}

// Drop deletes a credential.
func (s *Service) Drop(ctx context.Context, tx *store.Tx, m signin.Method, announce bool) error {
	c, err := credentialTable.GetUnchecked(ctx, tx, m.ID)
	if errors.Is(err, credentialTable.Missing) {
		return nil
	}
	if err != nil {
		return err
	}
	if announce {
		if err := s.outbox.CredentialRemoved(ctx, tx, c.UserID, masked(c), ""); err != nil {
			return err
		}
	}
	return s.remove(ctx, tx, c, records.Actor(ctx))
}

// masked returns enough of a value for its user to recognise it, but too little to carry a text of an attacker.
func masked(c Credential) string {
	const ellipsis = "…"
	runes := []rune(c.Value)
	switch local, domain, isEmail := strings.Cut(c.Value, "@"); {
	case isEmail:
		return string([]rune(local)[:1]) + ellipsis + "@" + domain
	case c.Type == Phone && len(runes) > 6:
		return string(runes[:3]) + ellipsis + string(runes[len(runes)-2:])
	default:
		return string(runes[:1]) + ellipsis
	}
}

// addCredential adds a credential to a user and sends the code that validates it. Users prove themselves with an older method. The
// response does not reveal whether another user has the value; validation with the right code does. It returns apierr.UserNotFound,
// apierr.NoAccess, apierr.CredentialExists for a value that the user already has and for a taken user name, apierr.RecordErased,
// apierr.TooManyCredentials, apierr.OTPSendLimited, apierr.ServiceAccount for a service account, and what signin.Rule.Prove returns.
func (s *Service) addCredential(ctx context.Context, in addCredentialInput) (Credential, error) {
	caller := access.From(ctx)
	user, err := s.userForCredential(ctx, in.UserID)
	if err != nil {
		return Credential{}, err
	}
	if user.Erased() {
		return Credential{}, apierr.RecordErased
	}
	if user.Kind == Machine {
		return Credential{}, apierr.ServiceAccount
	}
	c := newCredential(user.ID, in.id)
	if caller.UserID == user.ID {
		if err := s.auth.Prove(ctx, in.Proof); err != nil {
			return Credential{}, err
		}
		c.session = caller.SessionID
	}
	if c.Validated {
		return s.addUsername(ctx, c)
	}
	c.key += " " + c.ID // unique beside the key of another user with the value
	code, err := s.prepareProof(ctx, c, user.Language)
	if err != nil {
		return Credential{}, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkCount(ctx, tx, c); err != nil {
			return err
		}
		if err := s.sendLimits(ctx, c.target(), forValidation).consume(ctx, tx); err != nil {
			return err
		}
		if err := s.insert(ctx, tx, &c, records.Actor(ctx)); err != nil {
			return err
		}
		if _, err := s.sendCode(ctx, tx, c.ID, code); err != nil {
			return err
		}
		tx.Respond(c)
		return nil
	})
	return c, err
}

// userForCredential returns a user to whom the caller may add a credential.
func (s *Service) userForCredential(ctx context.Context, id string) (User, error) {
	caller := access.From(ctx)
	user, err := userTable.GetUnchecked(ctx, s.db, id)
	if err == nil && caller.UserID != user.ID && !caller.May(access.Credentials, access.Create) {
		err = apierr.NoAccess
	}
	return user, err
}

func (s *Service) findForCredential(ctx context.Context, ids []string, _ any) error {
	_, err := s.userForCredential(ctx, ids[0])
	return err
}

// addUsername adds a user name to a user. User names have no code, so that the response reveals whether a name is taken.
// Therefore the number of attempts is limited.
func (s *Service) addUsername(ctx context.Context, c Credential) (Credential, error) {
	tried := limits{apierr.RateLimited, []quota{{s.subject("names", access.From(ctx).UserID), userSends, hour}}}
	undo, keepUndo := s.auth.NewUndo(signin.Credential, c.UserID, c.ID)
	var rejection error
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkCount(ctx, tx, c); err != nil {
			return err
		}
		if err := tried.consume(ctx, tx); err != nil {
			return err
		}
		taken, err := s.isTaken(ctx, tx, c.key)
		if err != nil {
			return err
		}
		if rejection = nil; taken {
			rejection = apierr.CredentialExists
			return nil // committed, so that the attempt counts
		}
		if err := s.outbox.CredentialAdded(ctx, tx, c.UserID, masked(c), undo); err != nil {
			return err
		}
		if err := keepUndo(ctx, tx); err != nil {
			return err
		}
		c.trust(tx.Now().Add(signin.Trial))
		if err := s.insert(ctx, tx, &c, records.Actor(ctx)); err != nil {
			return err
		}
		tx.Respond(c)
		return nil
	})
	return c, cmp.Or(err, rejection)
}

// checkCount returns apierr.TooManyCredentials, or apierr.CredentialExists for a value that the user already has.
func checkCount(ctx context.Context, q store.Querier, c Credential) error {
	if err := notErased(ctx, q, c.UserID); err != nil {
		return err
	}
	var all, same int
	if err := q.QueryRow(ctx, countCredentials, c.UserID, c.target()).Scan(&all, &same); err != nil {
		return err
	}
	switch {
	case same > 0:
		return apierr.CredentialExists
	case all >= maxCredentials:
		return apierr.TooManyCredentials.With(apierr.Args{"Max": maxCredentials})
	}
	return nil
}

// isTaken reports whether a user has validated the value or recently claimed it.
func (s *Service) isTaken(ctx context.Context, q store.Querier, key string) (bool, error) {
	return store.Exists(ctx, q, selectTaken, key, q.Now().Add(-s.OTPLife))
}

// prepareProof prepares the code that validates a value. If another user has already validated the value, the message says so
// instead, and the stored code is random and is never sent.
func (s *Service) prepareProof(ctx context.Context, c Credential, language string) (code, error) {
	owned, err := selectValidated(ctx, s.db, loginKeys{c.target(), c.target()})
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && owned.UserID == c.UserID:
		return s.prepareCode(c, language, forValidation), nil
	case err != nil:
		return code{}, err
	}
	owner, err := userTable.GetUnchecked(ctx, s.db, owned.UserID)
	if err != nil {
		return code{}, err
	}
	notice := s.prepareCode(owned, owner.Language, forTakenValue)
	notice.hash, notice.purpose = s.codeHash(c.ID, forValidation, rand.Text()), forValidation
	return notice, nil
}
