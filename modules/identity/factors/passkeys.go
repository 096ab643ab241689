package factors

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"kontor/server/apierr"
)

const (
	ceremonyTime     = 5 * time.Minute // the timeout in the options; the challenge has its own
	maxPasskeyAnswer = 16 << 10        // bytes; the answers of authenticators have one or two kilobytes
	maxCredentialID  = 1023            // bytes (WebAuthn, section 6.5.1)
)

// The purposes of a ceremony. The data of one cannot be used for another.
const (
	forEnrolment = "enrolment"
	forSignIn    = "sign_in"
)

// ceremony is what is kept between the options and the answer of an authenticator.
type ceremony struct {
	Purpose  string               `json:"purpose"`
	FactorID string               `json:"factor_id,omitempty"` // of an enrolment
	Session  webauthn.SessionData `json:"session"`
}

// relyingParty is Kontor as authenticators see it.
type relyingParty struct{ web *webauthn.WebAuthn }

// newRelyingParty returns the relying party at an address, or nil where browsers offer no passkeys: without a host name, and
// without TLS except on this machine (WebAuthn, section 5.1.3).
func newRelyingParty(baseURL, name string) *relyingParty {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil
	}
	host := strings.ToLower(u.Hostname())
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if _, err := netip.ParseAddr(host); err == nil || host == "" || u.Scheme != "https" && !local {
		return nil
	}
	web, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: name, RPOrigins: []string{origin(u)},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: protocol.ResidentKeyRequired(), ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired,
		},
		// The store's clock decides when a challenge expires, not the library.
		Timeouts: webauthn.TimeoutsConfig{Login: webauthn.TimeoutConfig{Timeout: ceremonyTime}, Registration: webauthn.TimeoutConfig{Timeout: ceremonyTime}},
	})
	if err != nil {
		return nil
	}
	return &relyingParty{web}
}

// origin returns the origin of an address as browsers write it: in lower case and without the standard port.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host
}

// beginEnrolment returns the options of navigator.credentials.create and the data for finishEnrolment.
func (r *relyingParty) beginEnrolment(a account, factorID string) (options jsontext.Value, kept []byte, err error) {
	creation, session, err := r.web.BeginRegistration(a, webauthn.WithExclusions(webauthn.Credentials(a.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return nil, nil, fmt.Errorf("begin an enrolment: %w", err)
	}
	return encodeCeremony(creation.Response, ceremony{forEnrolment, factorID, *session})
}

// beginSignIn returns the options of navigator.credentials.get and the data for finishSignIn. Without a user, the
// authenticator offers the passkeys that it holds.
func (r *relyingParty) beginSignIn(a *account) (options jsontext.Value, kept []byte, err error) {
	var assertion *protocol.CredentialAssertion
	var session *webauthn.SessionData
	if a == nil {
		assertion, session, err = r.web.BeginDiscoverableLogin()
	} else {
		assertion, session, err = r.web.BeginLogin(*a)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("begin a sign-in: %w", err)
	}
	return encodeCeremony(assertion.Response, ceremony{Purpose: forSignIn, Session: *session})
}

func encodeCeremony(response any, c ceremony) (options jsontext.Value, kept []byte, err error) {
	if options, err = json.Marshal(response); err == nil {
		kept, err = json.Marshal(c)
	}
	return options, kept, err
}

// openCeremony returns the session of a ceremony of the purpose.
func openCeremony(kept []byte, purpose, factorID string) (webauthn.SessionData, error) {
	var c ceremony
	if err := json.Unmarshal(kept, &c); err != nil {
		return webauthn.SessionData{}, apierr.InvalidFactor.Wrap(err)
	}
	if c.Purpose != purpose || c.FactorID != factorID {
		return webauthn.SessionData{}, apierr.InvalidFactor.Wrap(fmt.Errorf("a ceremony of %s is used for %s", c.Purpose, purpose))
	}
	return c.Session, nil
}

// finishEnrolment checks the answer of an authenticator and returns the new passkey. It returns apierr.InvalidFactor.
func (r *relyingParty) finishEnrolment(a account, kept []byte, factorID string, answer jsontext.Value) (passkey, error) {
	session, err := openCeremony(kept, forEnrolment, factorID)
	if err != nil {
		return passkey{}, err
	}
	if len(answer) > maxPasskeyAnswer {
		return passkey{}, apierr.InvalidFactor
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return passkey{}, apierr.InvalidFactor.Wrap(err)
	}
	// Kontor asks for no attestation. Browsers then send none, or one that the passkey has signed itself. Everything else
	// would only be more input for the parsers of vendors' formats.
	if format := parsed.Response.AttestationObject.Format; format != "none" && format != "packed" {
		return passkey{}, apierr.InvalidFactor.Wrap(fmt.Errorf("attestation in the format %q", format))
	}
	c, err := r.web.CreateCredential(a, session, parsed)
	if err != nil {
		return passkey{}, apierr.InvalidFactor.Wrap(err)
	}
	aaguid, err := uuid.FromBytes(c.Authenticator.AAGUID)
	if err != nil || len(c.ID) == 0 || len(c.ID) > maxCredentialID {
		return passkey{}, apierr.InvalidFactor.Wrap(errors.Join(err, fmt.Errorf("a credential id of %d bytes", len(c.ID))))
	}
	return passkey{
		id: factorID, credentialID: base64.RawURLEncoding.EncodeToString(c.ID), publicKey: base64.RawURLEncoding.EncodeToString(c.PublicKey),
		transports: knownTransports(c.Transport), aaguid: aaguid.String(),
		backupEligible: c.Flags.BackupEligible, backedUp: c.Flags.BackupState, signCount: int64(c.Authenticator.SignCount),
	}, nil
}

// knownTransports returns the ways to reach an authenticator that are in the standard, in a fixed order.
func knownTransports(sent []protocol.AuthenticatorTransport) []string {
	var known []string
	for _, t := range []protocol.AuthenticatorTransport{protocol.USB, protocol.NFC, protocol.BLE, protocol.SmartCard, protocol.Hybrid, protocol.Internal} {
		if slices.Contains(sent, t) {
			known = append(known, string(t))
		}
	}
	return known
}

// parseAssertion parses the answer of an authenticator to a sign-in. It returns apierr.InvalidFactor.
func parseAssertion(answer jsontext.Value) (*protocol.ParsedCredentialAssertionData, error) {
	if len(answer) > maxPasskeyAnswer {
		return nil, apierr.InvalidFactor
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return nil, apierr.InvalidFactor.Wrap(err)
	}
	return parsed, nil
}

// finishSignIn checks a parsed answer for a user and returns the passkey with its new counter and backup state. cloned reports
// a counter that did not grow: two authenticators use the same passkey. It returns apierr.InvalidFactor.
func (r *relyingParty) finishSignIn(a account, kept []byte, parsed *protocol.ParsedCredentialAssertionData, discovered bool) (used passkey, cloned bool, err error) {
	session, err := openCeremony(kept, forSignIn, "")
	if err != nil {
		return passkey{}, false, err
	}
	var c *webauthn.Credential
	if discovered {
		found := func(_, _ []byte) (webauthn.User, error) { return a, nil }
		_, c, err = r.web.ValidatePasskeyLogin(found, session, parsed)
	} else {
		c, err = r.web.ValidateLogin(a, session, parsed)
	}
	if err != nil {
		return passkey{}, false, apierr.InvalidFactor.Wrap(err)
	}
	id := base64.RawURLEncoding.EncodeToString(c.ID)
	i := slices.IndexFunc(a.passkeys, func(p passkey) bool { return p.credentialID == id })
	if i < 0 {
		return passkey{}, false, apierr.InvalidFactor
	}
	used = a.passkeys[i]
	used.backedUp, used.signCount = c.Flags.BackupState, int64(c.Authenticator.SignCount)
	return used, c.Authenticator.CloneWarning, nil
}

const (
	codeCount  = 10
	codeLength = 12 // characters of five bits: 60 bits
	codeGroup  = 4  // characters between hyphens

	// codeAlphabet is that of Crockford: digits and letters without I, L, O and U, which are easily confused.
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// newCodes returns ten different recovery codes as they are shown, such as 7K2M-9QPT-4XWD.
func newCodes() []string {
	codes, seen := make([]string, 0, codeCount), map[string]bool{}
	for len(codes) < codeCount {
		if code := newCode(); !seen[code] {
			seen[code] = true
			codes = append(codes, code)
		}
	}
	return codes
}

func newCode() string {
	var random [codeLength]byte
	rand.Read(random[:]) // does not fail: it would end the program
	var b strings.Builder
	for i, r := range random {
		if i > 0 && i%codeGroup == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(codeAlphabet[int(r)%len(codeAlphabet)]) // 256 is a multiple of 32, so every character is as likely
	}
	return b.String()
}

// parseCode returns a recovery code as people type it in its stored form: twelve characters in upper case. Spaces and hyphens
// do not count; O is read as 0, and I and L as 1. ok is false for a text that cannot be a code.
func parseCode(typed string) (code string, ok bool) {
	const longest = 64 // a code with generous spaces
	if len(typed) > longest {
		return "", false
	}
	var b strings.Builder
	for _, r := range typed {
		switch r {
		case ' ', '\t', '-', '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2212', '\u00a0': // hyphens and dashes that text programs insert
			continue
		}
		if 'a' <= r && r <= 'z' { // only these: the capital letter of some others is in the alphabet, too
			r -= 'a' - 'A'
		}
		switch r {
		case 'O':
			r = '0'
		case 'I', 'L':
			r = '1'
		}
		if r > unicode.MaxASCII || !strings.ContainsRune(codeAlphabet, r) {
			return "", false
		}
		b.WriteByte(byte(r))
	}
	return b.String(), b.Len() == codeLength
}

// codePurpose is the purpose of the keyed hash of a code. The hashes survive a rotation of the master key, because the codes
// are not stored and cannot be hashed again.
const codePurpose = "recovery code"

// codeHash returns the stored hash of a new code in its stored form. It covers the factor.
func (s *Service) codeHash(factorID, code string) string {
	return hex.EncodeToString(s.db.Keyed(codePurpose, []byte(factorID+" "+code)))
}

// codeHashes returns the hashes that a code may have, by the keys of former rotations too.
func (s *Service) codeHashes(factorID, code string) []string {
	hashes := []string{s.codeHash(factorID, code)}
	for _, older := range s.db.KeyedOlder(codePurpose, []byte(factorID+" "+code)) {
		hashes = append(hashes, hex.EncodeToString(older))
	}
	return hashes
}
