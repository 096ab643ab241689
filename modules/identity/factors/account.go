package factors

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"kontor/server/apierr"
	"kontor/store"
)

// account is a user as the library sees them.
type account struct {
	handle      []byte
	name, label string
	passkeys    []passkey
}

// handleOf returns the user handle that authenticators keep: the bytes of the user's id. It has no personal data, and it
// stays the same when the keys of the database are rotated. A keyed hash would not, and would end all passkeys.
func handleOf(userID string) ([]byte, error) {
	id, err := uuid.Parse(userID)
	if err != nil {
		return nil, fmt.Errorf("user handle of %q: %w", userID, err)
	}
	return id[:], nil
}

// WebAuthnID returns the user handle.
func (a account) WebAuthnID() []byte { return a.handle }

// WebAuthnName returns the name by which the user signs in.
func (a account) WebAuthnName() string { return a.name }

// WebAuthnDisplayName returns the name that authenticators show.
func (a account) WebAuthnDisplayName() string { return a.label }

// WebAuthnCredentials returns the user's passkeys. One that is damaged is left out.
func (a account) WebAuthnCredentials() []webauthn.Credential {
	found := make([]webauthn.Credential, 0, len(a.passkeys))
	for _, p := range a.passkeys {
		if c, err := p.credential(); err == nil {
			found = append(found, c)
		}
	}
	return found
}

// credential returns a stored passkey in the form of the library.
func (p passkey) credential() (webauthn.Credential, error) {
	id, idErr := base64.RawURLEncoding.DecodeString(p.credentialID)
	key, keyErr := base64.RawURLEncoding.DecodeString(p.publicKey)
	aaguid, aaguidErr := uuid.Parse(p.aaguid)
	if err := errors.Join(idErr, keyErr, aaguidErr); err != nil {
		return webauthn.Credential{}, fmt.Errorf("passkey %s: %w", p.id, err)
	}
	c := webauthn.Credential{ID: id, PublicKey: key, AttestationFormat: "none",
		Flags:         webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: p.backupEligible, BackupState: p.backedUp},
		Authenticator: webauthn.Authenticator{AAGUID: aaguid[:], SignCount: uint32(p.signCount)}} //nolint:gosec // it was stored from 32 bits
	for _, t := range p.transports {
		c.Transport = append(c.Transport, protocol.AuthenticatorTransport(t))
	}
	return c, nil
}

// disabled is the status of users who must not sign in (see the view people of the directory).
const disabled = "disabled"

// checkUser returns apierr.InvalidFactor for a user who does not exist or must not sign in.
func checkUser(ctx context.Context, q store.Querier, userID string) error {
	status, err := userStatus(ctx, q, userID)
	if errors.Is(err, apierr.UserNotFound) || err == nil && status == disabled {
		return apierr.InvalidFactor.Wrap(errors.New("the user is disabled or does not exist"))
	}
	return err
}

// account returns a user with their passkeys, as authenticators see them. It returns apierr.InvalidFactor for a user who must
// not sign in.
func (s *Service) account(ctx context.Context, q store.Querier, userID string) (account, error) {
	err := checkUser(ctx, q, userID)
	if err != nil {
		return account{}, err
	}
	a := account{}
	if a.handle, err = handleOf(userID); err != nil {
		return account{}, err
	}
	if err := q.QueryRow(ctx, selectPerson, userID).Scan(&a.label, &a.name); err != nil {
		return account{}, fmt.Errorf("name of user %s: %w", userID, err)
	}
	if a.name == "" {
		a.name = userID
	}
	if a.label == "" {
		a.label = a.name
	}
	a.passkeys, err = store.All(ctx, q, scanPasskey, selectPasskeys, userID)
	return a, err
}
