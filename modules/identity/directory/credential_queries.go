package directory

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const credentialColumns = "id, user_id, type, value, value_key, validated, validated_at, created_at, version, trusted_from, session_id"

func scanCredential(row records.Row) (Credential, error) {
	var c Credential
	var trusted store.Time
	err := row.Scan(&c.ID, &c.UserID, &c.Type, &c.Value, &c.key, &c.Validated, &c.ValidatedAt, &c.CreatedAt, &c.version, &trusted, &c.session)
	c.trust(trusted)
	return c, err
}

// credentialTable holds the credentials as records. They belong to their user, not to their creator. A missing credential is
// reported as a missing user, as the specification defines for the deletion.
var credentialTable = records.Table[Credential]{
	Type:      access.Credentials,
	From:      "credentials",
	Columns:   credentialColumns,
	Scan:      scanCredential,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read | access.Update | access.Delete, SQL: "user_id = $1"}},
	Missing:   apierr.UserNotFound,
}

var credentialList = list.New(list.Source[Credential]{
	From:    "credentials",
	Columns: credentialColumns,
	ID:      "id",
	Created: "created_at",
	Tables:  []string{"credentials"},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "type", Type: list.Text, Column: "type", Key: "type"},
		{Name: "value", Type: list.Text, Column: "value", Key: "value_key", Fold: LoginKey},
		{Name: "validated", Type: list.Bool, Column: "validated"},
		{Name: "validated_at", Type: list.Time, Column: "validated_at", Null: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
	},
	Scan: scanCredential,
})

const (
	insertCredential = `
		INSERT INTO credentials (id, user_id, type, value, value_key, validated, validated_at, created_at, created_by, trusted_from, value_skeleton, session_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

	// A claim is deleted when its first code has expired and the value is claimed again, or when another user validates it.
	selectOldClaim = `
		SELECT ` + credentialColumns + ` FROM credentials
		WHERE value_key = $1 AND validated = FALSE AND created_at <= $2`

	validateCredential = `
		UPDATE credentials SET validated = TRUE, validated_at = $2, value_key = $3, trusted_from = $4, session_id = '', version = version + 1
		WHERE id = $1 AND validated = FALSE`

	deleteCredential = `DELETE FROM credentials WHERE id = $1`

	countValidated = `SELECT count(*) FROM credentials WHERE user_id = $1 AND validated = TRUE`

	countCredentials = `
		SELECT count(*), COALESCE(sum(CASE WHEN value_key = $2 OR value_key = $2 || ' ' || id THEN 1 ELSE 0 END), 0)
		FROM credentials WHERE user_id = $1`

	selectTaken = `SELECT 1 FROM credentials WHERE value_key = $1 AND (validated = TRUE OR created_at > $2) LIMIT 1`

	selectUntrustedOf = `
		SELECT ` + credentialColumns + ` FROM credentials
		WHERE user_id = $1 AND (validated = FALSE OR trusted_from > $2 AND trusted_from < $3) ORDER BY id`

	selectUserExists = `SELECT count(*) FROM users WHERE id = $1`

	// The former key of a value takes precedence: it belongs to a credential that collides with an older one.
	selectValidatedByKey = `
		SELECT ` + credentialColumns + ` FROM credentials
		WHERE (value_key = $1 OR value_key = $2) AND validated = TRUE
		ORDER BY CASE WHEN value_key = $2 THEN 0 ELSE 1 END LIMIT 1`
)

// loginKeys are the keys of a sign-in value.
type loginKeys struct{ key, former string }

func keysOf(text string) loginKeys { return loginKeys{LoginKey(text), FormerKey(text)} }

// selectValidated returns the validated credential of a value, or store.ErrNotFound.
func selectValidated(ctx context.Context, q store.Querier, k loginKeys) (Credential, error) {
	return scanCredential(q.QueryRow(ctx, selectValidatedByKey, k.key, k.former))
}

// userExists returns apierr.UserNotFound for an unknown id.
func userExists(ctx context.Context, q store.Querier, userID string) error {
	var n int
	if err := q.QueryRow(ctx, selectUserExists, userID).Scan(&n); err != nil {
		return fmt.Errorf("find a user: %w", err)
	}
	if n == 0 {
		return apierr.UserNotFound
	}
	return nil
}

// credentialOf returns a credential of a user with which the caller may do what is wanted. It returns apierr.UserNotFound,
// apierr.CredentialNotFound or apierr.NoAccess.
func credentialOf(ctx context.Context, q store.Querier, userID, credentialID string, wanted access.Permission) (Credential, error) {
	c, err := credentialTable.Get(ctx, q, credentialID, wanted)
	if err == nil && c.UserID == userID {
		return c, nil
	}
	if err != nil && !errors.Is(err, apierr.UserNotFound) && !errors.Is(err, apierr.NoAccess) {
		return Credential{}, err
	}
	if err := userExists(ctx, q, userID); err != nil {
		return Credential{}, err
	}
	if caller := access.From(ctx); caller.UserID != userID && !caller.May(access.Credentials, wanted) {
		return Credential{}, apierr.NoAccess
	}
	return Credential{}, apierr.CredentialNotFound
}

// The types of a credential.
const (
	Email    = "email"
	Phone    = "phone"
	Username = "username"
)

// identifier is a parsed credential value with its key.
type identifier struct {
	kind  string
	value string
	key   string
}

// ruleUsername is broken by malformed user names. Its text is in users.json.
const ruleUsername types.Rule = "username"

const (
	minUsername = 3
	maxUsername = 64
)

// parseIdentifier parses a credential value of a type. It returns a [types.Rule].
func parseIdentifier(kind, text string) (identifier, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return identifier{}, types.RuleRequired
	}
	switch kind {
	case Email:
		if len(text) > maxLogin { // before normalisation
			return identifier{}, types.RuleEmail
		}
		email, err := types.ParseEmail(norm.NFKC.String(text))
		return identifier{kind, email.String(), email.LookAlikeKey()}, err
	case Phone:
		// Without a country code a number is ambiguous.
		if !strings.HasPrefix(text, "+") {
			return identifier{}, types.RulePhone
		}
		phone, err := types.ParsePhone(text)
		return identifier{kind, phone.String(), phone.String()}, err
	default:
		if !isUsername(text) {
			return identifier{}, ruleUsername
		}
		return identifier{Username, text, types.Fold(text)}, nil
	}
}

// isUsername reports whether a text is a user name: 3 to 64 letters, digits, dots, hyphens and underscores, beginning with a
// letter. Only ASCII letters are allowed, so that no two names look alike. UUIDs are rejected: users can sign in with their id.
func isUsername(s string) bool {
	if len(s) < minUsername || len(s) > maxUsername || types.IsID(s) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '.' || c == '-' || c == '_'):
		default:
			return false
		}
	}
	return true
}

// LoginKey returns the key of a credential value of unknown type, as people type it at sign-in. A text that is not valid for
// any type gets a key that no credential can have.
func LoginKey(text string) string {
	text = strings.TrimSpace(text)
	for _, kind := range []string{Email, Phone, Username} {
		if parsed, err := parseIdentifier(kind, text); err == nil {
			return parsed.key
		}
	}
	return types.Fold(text)
}

// FormerKey returns the key of a credential value from before look-alike characters were folded. Credentials whose new key was
// taken still have it.
func FormerKey(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxLogin {
		if email, err := types.ParseEmail(text); err == nil {
			return email.Key()
		}
	}
	return LoginKey(text)
}

// LoginKey is the function LoginKey, for callers that use the service through an interface.
func (s *Service) LoginKey(text string) string { return LoginKey(text) }

// channel returns the channel that sends codes to a type of credential, or an empty text for user names.
func channel(kind string) string {
	switch kind {
	case Email:
		return "email"
	case Phone:
		return "sms"
	default:
		return ""
	}
}

// Messages can be abused to annoy recipients, to cause costs, and to find out which addresses have an account. The counts are
// rows, so that they survive a restart.
const (
	// Messages to one target, from all callers together.
	otpSends    = 3
	otpWindow   = 10 * time.Minute
	userSends   = 10 // requested by one user in an hour, to any targets
	dailyOfUser = 30
	failedCodes = 1000 // wrong codes of all users in an hour; after that each code has one attempt
	hour, day   = time.Hour, 24 * time.Hour
	keyFactor   = 2 // an API key serves many networks
	// All callers without session and key together, so that many networks cannot send messages without end.
	anonymousFactor = 4
	conflictPart    = 2 // half as many registrations of taken values as messages

	// registrationPercent is the number of registrations of free values for 100 messages. The first e-mail of a registration
	// does not count as a message, but a caller must be rejected before they have probed a list of 100 addresses.
	registrationPercent = 150
)

// dailySends are the messages to one target in a day, by purpose.
var dailySends = map[string]int{forValidation: 10, forRecovery: 30, forInvitation: 10}

// quota is the number of events of a subject that are allowed within a window.
type quota struct {
	subject string
	most    int
	window  time.Duration
}

// limits are the quotas that one event counts for, with the error for an exceeded one.
type limits struct {
	rejection apierr.Kind
	quotas    []quota
}

// subject returns the keyed hash under which events are counted. The table reveals neither addresses nor networks.
func (s *Service) subject(kind, text string) string {
	return hex.EncodeToString(s.db.Keyed("otp "+kind, []byte(text)))
}

// byCaller returns the quotas of the API key and the network of a request.
func (s *Service) byCaller(ctx context.Context, kind string, perHour int) (quotas []quota) {
	if perHour <= 0 {
		return nil
	}
	request := endpoint.Of(ctx)
	quotas = append(quotas, quota{s.subject(kind+" network", request.Network()), perHour, hour})
	if key := access.From(ctx).KeyID; key != "" {
		quotas = append(quotas, quota{s.subject(kind+" key", key), keyFactor * perHour, hour})
	}
	return quotas
}

// sendLimits returns the limits of a message to a target, whether or not the target exists. Each purpose has a daily limit of
// its own, so that adding an address to an account does not block the recovery of the account that has it.
func (s *Service) sendLimits(ctx context.Context, key, purpose string) limits {
	l := s.targetLimits(ctx, key, purpose)
	l.quotas = append(l.quotas, s.byCaller(ctx, "send", s.PerHour)...)
	if caller := access.From(ctx); s.PerHour > 0 && caller.UserID == "" && caller.KeyID == "" {
		l.quotas = append(l.quotas, quota{s.subject("send", "anonymous"), anonymousFactor * s.PerHour, hour})
	}
	return l
}

// targetLimits returns the limits of a target and of the requesting user.
func (s *Service) targetLimits(ctx context.Context, key, purpose string) limits {
	l := limits{rejection: apierr.OTPSendLimited, quotas: []quota{
		{s.subject("target", key), otpSends, otpWindow},
		{s.subject("target for "+purpose, key), dailySends[purpose], day},
	}}
	if user := access.From(ctx).UserID; user != "" {
		subject := s.subject("user", user)
		l.quotas = append(l.quotas, quota{subject, userSends, hour}, quota{subject, dailyOfUser, day})
	}
	return l
}

// registrationLimits returns the limits of a registration.
func (s *Service) registrationLimits(ctx context.Context) limits {
	return limits{apierr.RateLimited, s.byCaller(ctx, "registration", registrationPercent*s.PerHour/100)}
}

// firstCodeLimits returns the limits of the message of a registration. An SMS costs money and counts like any other. An e-mail
// is limited by its target and by the registrations.
func (s *Service) firstCodeLimits(ctx context.Context, c Credential) limits {
	switch c.Type {
	case Phone:
		return s.sendLimits(ctx, c.target(), forValidation)
	case Email:
		return s.targetLimits(ctx, c.target(), forValidation)
	default:
		return limits{}
	}
}

// conflictLimits returns the limits of registrations of taken values. Once they are used up, free values are rejected too:
// otherwise the rejection would reveal the same as a conflict.
func (s *Service) conflictLimits(ctx context.Context) limits {
	return limits{apierr.RateLimited, s.byCaller(ctx, "conflict", s.PerHour/conflictPart)}
}

// wrongCodeLimits returns the limits of wrong codes of callers without a session. They end the guesses of a network before these use
// up the attempts of all users.
func (s *Service) wrongCodeLimits(ctx context.Context) limits {
	return limits{apierr.RateLimited, s.byCaller(ctx, "wrong code", s.PerHour)}
}

// countWrongCode counts a wrong code of a caller without a session.
func (s *Service) countWrongCode(ctx context.Context, tx *store.Tx) error {
	if err := s.wrongCodeLimits(ctx).count(ctx, tx); err != nil {
		return err
	}
	return s.countFailure(ctx, tx)
}

// tries returns the number of attempts that a code allows.
func (s *Service) tries(ctx context.Context, q store.Querier) (int, error) {
	wait, err := waitFor(ctx, q, quota{s.subject("failed", ""), failedCodes, hour})
	if err == nil && wait > 0 {
		return 1, nil
	}
	return s.OTPAttempts, err
}

// countFailure counts a wrong code. It writes nothing once the budget is used up, so that a flood of wrong codes does not fill
// the table.
func (s *Service) countFailure(ctx context.Context, tx *store.Tx) error {
	failed := quota{s.subject("failed", ""), failedCodes, hour}
	if wait, err := waitFor(ctx, tx, failed); err != nil || wait > 0 {
		return err
	}
	return insertEvent(ctx, tx, failed.subject)
}

// check rejects an event that would exceed a quota. It writes nothing.
func (l limits) check(ctx context.Context, q store.Querier) error {
	var wait time.Duration
	for _, each := range l.quotas {
		pause, err := waitFor(ctx, q, each)
		if err != nil {
			return err
		}
		wait = max(wait, pause)
	}
	if wait > 0 {
		return l.rejection.RetryAfter(wait)
	}
	return nil
}

// consume counts an event, or rejects it before anything is written.
func (l limits) consume(ctx context.Context, tx *store.Tx) error {
	if err := l.check(ctx, tx); err != nil {
		return err
	}
	return l.count(ctx, tx)
}

// count counts an event for each subject, whether or not it exceeds a quota.
func (l limits) count(ctx context.Context, tx *store.Tx) error {
	last := ""
	for _, each := range l.quotas {
		if each.subject == last { // two windows of one subject are adjacent
			continue
		}
		if err := insertEvent(ctx, tx, each.subject); err != nil {
			return err
		}
		last = each.subject
	}
	return nil
}

const (
	// The event that must leave the window before another one is allowed.
	selectLimiting = `
		SELECT sent_at FROM otp_sends
		WHERE target = $1 AND sent_at > $2
		ORDER BY sent_at DESC LIMIT 1 OFFSET $3`

	insertSend = `INSERT INTO otp_sends (id, target, sent_at) VALUES ($1, $2, $3)`

	deleteOldSends = `
		DELETE FROM otp_sends WHERE id IN (SELECT id FROM otp_sends WHERE sent_at <= $1 ORDER BY sent_at LIMIT $2)`
)

// waitFor returns how long a quota rejects events; zero for not at all.
func waitFor(ctx context.Context, q store.Querier, limited quota) (time.Duration, error) {
	now := q.Now()
	var at store.Time
	err := q.QueryRow(ctx, selectLimiting, limited.subject, now.Add(-limited.window), limited.most-1).Scan(&at)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	return time.Duration(min(at, now).Add(limited.window)-now) * time.Millisecond, err // an event in the future counts as now
}

func insertEvent(ctx context.Context, tx *store.Tx, subject string) error {
	return tx.Run(ctx, insertSend, store.NewID(), subject, tx.Now())
}

// purgeBatch is the number of rows that one transaction deletes, so that other writes do not wait long.
const purgeBatch = 500

// Purge deletes events that are outside of all windows, and invitations that expired long ago. Call it about once an hour.
func (s *Service) Purge(ctx context.Context) error {
	err := s.db.InBatches(ctx, purgeBatch, func(tx *store.Tx) (int64, error) {
		return tx.Exec(ctx, deleteExpiredInvitations, tx.Now().Add(-keepExpired), purgeBatch)
	})
	if err != nil {
		return err
	}
	return s.db.InBatches(ctx, purgeBatch, func(tx *store.Tx) (int64, error) {
		return tx.Exec(ctx, deleteOldSends, tx.Now().Add(-day), purgeBatch)
	})
}
