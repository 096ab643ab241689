package serviceaccounts

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// maxTokens is the number of valid tokens of an account: enough to replace each of several programs' tokens.
	maxTokens = 20
	// defaultLife is the validity of a token without another one, maxLife the longest: one year and a month to replace it.
	defaultLife = 90 * 24 * time.Hour
	maxLife     = 400 * 24 * time.Hour

	actionIssue  = "service_tokens.create"
	actionRevoke = "service_tokens.revoke"

	allScopes = "*"
)

// Token is a token as the API lists it. Only the response that creates it has its text.
type Token struct {
	ID         string      `json:"id"`
	AccountID  string      `json:"account_id"`
	Name       string      `json:"name" example:"Production"`
	Scopes     []string    `json:"scopes" example:"customers.list" doc:"Names of the endpoints that the token may call; * for all that its account may call."`
	Networks   []string    `json:"networks" example:"192.0.2.0/24" doc:"Networks from which the token is accepted; empty for all."`
	CreatedAt  store.Time  `json:"created_at"`
	CreatedBy  string      `json:"created_by"`
	ExpiresAt  store.Time  `json:"expires_at"`
	RevokedAt  *store.Time `json:"revoked_at"`
	LastUsedAt *store.Time `json:"last_used_at" doc:"Accurate to about a minute."`

	version int64
}

// ETag names the state of the record.
func (t Token) ETag() string { return endpoint.VersionTag(t.version) }

// EachUser names the account and the creator of the token.
func (t Token) EachUser(add func(id string)) {
	add(t.AccountID)
	add(t.CreatedBy)
}

// NewToken is a new token with its text.
type NewToken struct {
	Token
	Text string `json:"token" doc:"The token, for the header Authorization: Bearer. It is not shown again."`
}

// Issue creates a token. The endpoint checks that the caller holds the rights of the account. It returns
// apierr.ServiceAccountNotFound, apierr.NoAccess, apierr.ServiceAccountDisabled, apierr.TooManyServiceTokens and apierr.InvalidInput.
func (s *Service) Issue(ctx context.Context, in TokenInput) (NewToken, error) {
	var made NewToken
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		a, err := accountTable.Get(ctx, tx, in.AccountID, access.Update)
		switch {
		case err != nil:
			return err
		case a.Status != active:
			return apierr.ServiceAccountDisabled
		}
		made, err = s.issue(ctx, tx, in)
		if err == nil {
			tx.Respond(made)
		}
		return err
	})
	return made, err
}

func (s *Service) issue(ctx context.Context, tx *store.Tx, in TokenInput) (NewToken, error) {
	now := tx.Now()
	expires, err := s.checkLimits(in, now)
	if err != nil {
		return NewToken{}, err
	}
	var live int
	if err := tx.QueryRow(ctx, countLive, in.AccountID, now).Scan(&live); err != nil {
		return NewToken{}, err
	}
	if live >= maxTokens {
		return NewToken{}, apierr.TooManyServiceTokens.With(apierr.Args{"Max": maxTokens})
	}
	id := store.NewID()
	made := NewToken{
		Token: Token{ID: id, AccountID: in.AccountID, Name: in.Name, Scopes: shown(in.scopes()), Networks: in.networks, CreatedAt: now,
			CreatedBy: records.Actor(ctx), ExpiresAt: expires, version: 1},
		Text: newTokenText(id),
	}
	if _, err := tx.Exec(ctx, insertToken, id, in.AccountID, in.Name, s.hash(made.Text), in.scopes(), strings.Join(in.networks, ","), now,
		made.CreatedBy, expires); err != nil {
		return NewToken{}, fmt.Errorf("store a service token: %w", err)
	}
	return made, tokenProof.Audit(ctx, tx, actionIssue, id, nil)
}

// checkLimits returns the expiry of a new token. It returns apierr.InvalidInput for scopes that no token can have, and for an
// expiry that has passed or is too far away.
func (s *Service) checkLimits(in TokenInput, now store.Time) (store.Time, error) {
	var problems apierr.Fields
	for i, scope := range in.Scopes {
		if scope != allScopes && !contains(s.scopes, scope) {
			problems.Add(fmt.Sprintf("scopes.%d", i), "invalid.scope", apierr.Args{"Scope": scope})
		}
	}
	expires := now.Add(defaultLife)
	if in.Expires != nil {
		expires = *in.Expires
		if expires <= now {
			problems.Add("expires_at", "invalid.date_past")
		} else if expires > now.Add(maxLife) {
			problems.Add("expires_at", "invalid.expiry_too_late", apierr.Args{"Max": int(maxLife / (24 * time.Hour))})
		}
	}
	return expires, problems.Err()
}

// Tokens lists the tokens of an account, including expired and revoked ones, with their last use up to now. It returns
// apierr.ServiceAccountNotFound and apierr.NoAccess.
func (s *Service) Tokens(ctx context.Context, accountID string, query list.Params) (list.Page[Token], error) {
	if _, err := accountTable.Get(ctx, s.db, accountID, access.Read); err != nil {
		return list.Page[Token]{}, err
	}
	if err := s.FlushUse(ctx); err != nil { // tokens can be listed while the disk accepts no writes
		s.Log.Warn("last use of service tokens not written", "cause", err)
	}
	return tokenList.Page(ctx, s.db, query, list.Where{SQL: "account_id = $1", Args: []any{accountID}})
}

// Revoke revokes a token; the next request with it is rejected, and its streams end. Revoking it again changes nothing. It
// returns apierr.ServiceAccountNotFound, apierr.NoAccess and apierr.ServiceTokenNotFound.
func (s *Service) Revoke(ctx context.Context, accountID, tokenID string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := accountTable.Get(ctx, tx, accountID, access.Update); err != nil {
			return err
		}
		return s.revoke(ctx, tx, accountID, tokenID)
	})
}

func (s *Service) findToken(ctx context.Context, ids []string, _ any) error {
	if _, err := accountTable.Get(ctx, s.db, ids[0], access.Update); err != nil {
		return err
	}
	return checkToken(ctx, s.db, ids[0], ids[1])
}

// checkToken returns apierr.ServiceTokenNotFound for a token of another account.
func checkToken(ctx context.Context, q store.Querier, accountID, tokenID string) error {
	owners, err := AccountsOf(ctx, q, []string{tokenID})
	if err == nil && owners[tokenID] != accountID {
		err = apierr.ServiceTokenNotFound
	}
	return err
}

// revoke returns apierr.ServiceTokenNotFound for a token of another account.
func (s *Service) revoke(ctx context.Context, tx *store.Tx, accountID, tokenID string) error {
	if err := checkToken(ctx, tx, accountID, tokenID); err != nil {
		return err
	}
	s.auth.Changed(tx, accountID)
	return tokenProof.ChangeRow(ctx, tx, actionRevoke, tokenID, updateRevoked, tokenID, tx.Now())
}

const (
	// tokenPrefix begins every token, so that scanners find tokens that leak. No access token begins so: those are JSON Web Tokens.
	tokenPrefix = "kontor_sa_"

	idDigits     = 32
	secretBytes  = 32
	secretLength = 43 // of secretBytes in base64url
	tokenLength  = len(tokenPrefix) + idDigits + 1 + secretLength
)

// newTokenText returns a token with a fresh secret: kontor_sa_<id>_<secret>.
func newTokenText(id string) string {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // does not fail: it would end the program
	return tokenPrefix + strings.ReplaceAll(id, "-", "") + "_" + base64.RawURLEncoding.EncodeToString(secret)
}

// parseToken returns the id in a token. Only the exact form of [newTokenText] is accepted, so that a token has one text.
func parseToken(text string) (id string, ok bool) {
	if len(text) != tokenLength || !strings.HasPrefix(text, tokenPrefix) {
		return "", false
	}
	digits, secret, ok := strings.Cut(text[len(tokenPrefix):], "_")
	if !ok || len(digits) != idDigits || digits != strings.ToLower(digits) {
		return "", false
	}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(secret); err != nil || strings.ContainsAny(secret, "\r\n") {
		return "", false
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return "", false
	}
	parsed, err := uuid.FromBytes(raw)
	return parsed.String(), err == nil
}

const (
	// warnBefore is how long before its expiry administrators are notified of a token.
	warnBefore = 7 * 24 * time.Hour
	warnBatch  = 50
)

// expiring is a token that expires soon.
type expiring struct {
	id, accountID, name, account string
	expires                      store.Time
}

// WarnOfExpiry notifies administrators of the tokens that expire within seven days, once for each token. Call it about once an
// hour.
func (s *Service) WarnOfExpiry(ctx context.Context) error {
	return s.db.InBatches(ctx, warnBatch, func(tx *store.Tx) (int64, error) {
		found, err := store.All(ctx, tx, func(row store.Scanner) (t expiring, err error) {
			err = row.Scan(&t.id, &t.accountID, &t.name, &t.expires, &t.account)
			return t, err
		}, selectExpiring, tx.Now(), tx.Now().Add(warnBefore), warnBatch)
		if err != nil || len(found) == 0 {
			return 0, err
		}
		return int64(len(found)), s.warn(ctx, tx, found)
	})
}

func (s *Service) warn(ctx context.Context, tx *store.Tx, tokens []expiring) error {
	administrators, err := s.users.Administrators(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if err := s.notifier.Notify(ctx, tx, event.Event{
			Kind: event.ServiceTokenExpiring, Type: access.Services, RecordID: t.accountID, Recipients: administrators,
			Args: map[string]any{"Name": t.name, "Account": t.account, "Date": t.expires.Std().UTC().Format(time.DateOnly)},
		}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, updateWarned, t.id, tx.Now()); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxName        = 100
	maxDescription = 500
)

// CreateInput describes a new account.
type CreateInput struct {
	Name        string   `json:"name" maxLength:"100" example:"Back office"`
	Description string   `json:"description" required:"false" maxLength:"500" example:"Reads customers every night."`
	Roles       []string `json:"roles" required:"false" maxItems:"20" example:"Advisor" doc:"Names or ids of roles. Without roles, the account may do what it is granted later."`
}

// Validate checks name and description.
func (in *CreateInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxName)
	in.Description = validate.Text(v, "description", in.Description, maxDescription)
}

// UpdateInput changes an account. Missing members stay as they are.
type UpdateInput struct {
	ID          string  `path:"id"`
	Name        *string `json:"name" maxLength:"100" example:"Back office"`
	Description *string `json:"description" maxLength:"500"`
	Status      *string `json:"status" enum:"active,disabled"`
}

// Validate checks the given members.
func (in *UpdateInput) Validate(v *apierr.Fields) {
	if in.Name != nil {
		*in.Name = validate.Required(v, "name", *in.Name, maxName)
	}
	if in.Description != nil {
		*in.Description = validate.Text(v, "description", *in.Description, maxDescription)
	}
	if in.Status != nil {
		validate.OneOf(v, "status", *in.Status, active, disabled)
	}
}

// TokenInput describes a new token.
type TokenInput struct {
	AccountID string      `path:"id"`
	Name      string      `json:"name" maxLength:"100" example:"Production"`
	Scopes    []string    `json:"scopes" required:"false" maxItems:"200" example:"customers.list" doc:"Names of the endpoints that the token may call. Without scopes, or with *, it may call all that its account may call."`
	Networks  []string    `json:"networks" required:"false" maxItems:"20" example:"192.0.2.0/24" doc:"Networks or addresses from which the token is accepted. Without networks, from everywhere."`
	Expires   *store.Time `json:"expires_at" doc:"When the token expires: at most 400 days from now; without it, in 90 days."`

	networks []string // in their stored form
}

// Validate checks name, scopes and networks.
func (in *TokenInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxName)
	switch {
	case in.Scopes == nil:
	case len(in.Scopes) == 0: // would look like a token for nothing, and be one for everything
		v.Add("scopes", "invalid.min_items", apierr.Args{"Min": 1})
	case len(in.Scopes) > 1 && slices.Contains(in.Scopes, allScopes):
		v.Add("scopes", "invalid.scope", apierr.Args{"Scope": allScopes})
	}
	in.networks = []string{}
	if in.Networks != nil && len(in.Networks) == 0 {
		v.Add("networks", "invalid.min_items", apierr.Args{"Min": 1})
	}
	for i, text := range in.Networks {
		network, ok := parseNetwork(strings.TrimSpace(text))
		if !ok {
			v.Add(fmt.Sprintf("networks.%d", i), "invalid.network")
		}
		if stored := network.String(); !slices.Contains(in.networks, stored) {
			in.networks = append(in.networks, stored)
		}
	}
}

// scopes returns the stored form of the scopes: empty for all.
func (in *TokenInput) scopes() string {
	if in.Scopes == nil || slices.Equal(in.Scopes, []string{allScopes}) {
		return ""
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(in.Scopes))), ",")
}

// parseNetwork parses a network as 192.0.2.0/24 or 2001:db8::/32, or a single address. Bits after the prefix must be zero, and
// a prefix of length 0 is rejected: it restricts nothing, and most likely is a mistake.
func parseNetwork(text string) (netip.Prefix, bool) {
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" || address.Is4In6() {
			return netip.Prefix{}, false
		}
		return netip.PrefixFrom(address, address.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Bits() == 0 || prefix.Addr().Is4In6() || prefix != prefix.Masked() {
		return netip.Prefix{}, false
	}
	return prefix, true
}

// storedNetworks returns the networks of a row.
func storedNetworks(stored string) []netip.Prefix {
	var networks []netip.Prefix
	for text := range strings.SplitSeq(stored, ",") {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, prefix)
		}
	}
	return networks
}

// allows reports whether a token may be used from an address. An unknown address belongs to no network. restricted is true for a
// token with networks, also if none of them can be parsed.
func allows(restricted bool, networks []netip.Prefix, from netip.Addr) bool {
	return !restricted || slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(from.Unmap()) })
}
