// Package auth authenticates callers: passwords, sign-in with lockouts, sessions and their tokens, and API keys.
//
// The tables are authoritative. Verified tokens, active sessions and valid API keys are cached in memory. A revocation
// invalidates entries that were read before it, whatever the cache still holds, on every node of a shared database.
//
// Users and credentials belong to the module directory. Sign-in reads them through its views; [Users] records the time of a
// sign-in in the transaction that opens the session.
package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/identity/auth/breached"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/revocable"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Events is the listener of sign-ins.
type Events interface {
	// SignedIn is called in the transaction of a sign-in. device is the X-Device-ID, empty without one. isNew reports that
	// the user has signed in before, but not from this device.
	SignedIn(ctx context.Context, tx *store.Tx, userID, device string, isNew bool) error
}

// Users is what sign-in needs from the directory.
type Users interface {
	// SetLastLogin records the time of a sign-in in its transaction.
	SetLastLogin(ctx context.Context, tx *store.Tx, userID string) error
}

// Options are the settings of the module. A zero value means the default.
type Options struct {
	AccessToken       time.Duration // validity of an access token
	RefreshToken      time.Duration // validity of a refresh token
	SessionIdle       time.Duration // how long a session may stay unused; 0: as long as its tokens are valid
	SessionsMax       int           // active sessions of a user; 0: any number
	FreeAttempts      int           // failures before the first lockout
	BasePause         time.Duration // the first lockout
	MaxPause          time.Duration // the longest lockout
	PasswordMinLength int           // in characters
	RequiredRoles     []string      // names or ids of the roles that require a second factor
	FactorGrace       time.Duration // how long their users may work without one
	SigningKeyAge     time.Duration // after which a new key signs access tokens; 0: never by itself
	BreachedPasswords string        // path of a file for the package breached; empty: none
	Hash              HashCost
	HashSlots         int // concurrent hashes; by default the number of cores
	// HashInChildren hashes passwords in child processes, where the system has them. See package hashing. A process
	// that is not a server, such as a command or a test, hashes in itself.
	HashInChildren bool
	Audience       string

	// LoginKey returns the value_key of a credential for a value as people type it.
	LoginKey func(value string) string
	// FormerKey returns the value_key of credentials from before look-alike characters were folded. nil means LoginKey.
	FormerKey func(value string) string
	Events    Events // nil: no listener
	// Changed is called on every node after the commit of a change to a user's status, roles or sessions, and before the response.
	// It ends what outlives a request, such as event streams. An empty id stands for all users. nil: nothing to end.
	Changed func(userID string)
	Texts   endpoint.Texts
	Log     *slog.Logger
}

func (o *Options) fill() {
	o.AccessToken = cmp.Or(o.AccessToken, time.Hour)
	o.RefreshToken = cmp.Or(o.RefreshToken, 24*time.Hour)
	o.FreeAttempts = cmp.Or(o.FreeAttempts, 5)
	o.BasePause = cmp.Or(o.BasePause, 2*time.Second)
	o.MaxPause = cmp.Or(o.MaxPause, 900*time.Second)
	o.PasswordMinLength = cmp.Or(o.PasswordMinLength, 12)
	o.Hash = cmp.Or(o.Hash, DefaultHashCost)
	o.HashSlots = cmp.Or(o.HashSlots, runtime.NumCPU())
	o.Audience = cmp.Or(o.Audience, "kontor-api")
	if o.LoginKey == nil {
		o.LoginKey = func(typed string) string { return types.Fold(strings.TrimSpace(typed)) }
	}
	if o.FormerKey == nil {
		o.FormerKey = o.LoginKey
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	if o.Texts == nil {
		o.Texts = keysAsTexts{}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
}

// keysAsTexts returns keys as texts, when no texts are configured.
type keysAsTexts struct{}

func (keysAsTexts) Text(_, key string, _ map[string]any) string { return key }

const (
	// maxTokens is the number of verified tokens, and of sessions, in memory: about 30 MB when full.
	maxTokens = 32 << 10
	maxKeys   = 1 << 10
)

// Service is the module.
type Service struct {
	links localLinks // of "kontor open"
	Peers Peers      // set before the first request

	db      *store.DB
	options Options

	topics       topics
	signing      atomic.Pointer[signingKeys] // nil before Start
	signingStale atomic.Bool                 // the latest try to read the signing keys failed
	signingLoads revocable.Loader            // loads for tokens with an unknown key
	loadingKeys  sync.Mutex                  // held while signing keys are read
	changingKeys sync.Mutex                  // held while signing keys are replaced
	verifyToken  fiber.Handler
	hasher       *hasher
	breached     *breached.File // nil without the setting
	pairs        *keyedSemaphore
	networks     *keyedSemaphore

	generations *revocable.Generations
	tokens      *revocable.Cache[*verified]
	sessions    *revocable.Cache[*session]
	keys        *revocable.Cache[*keyEntry]
	uses        *pendingUses
	keyUses     *records.Uses // of API keys
}

// Peers are what sign-in needs of modules that are built later, because they need sign-in.
type Peers struct {
	Users         Users
	Factors       Factors // nil: no user has a second factor
	Provider      Provider
	ProviderName  string                         // of the operator's provider, for the sign-in screen; empty: none
	Methods       map[signin.Kind]signin.Methods // the modules that own the methods of sign-in
	Credentials   signin.Restorer
	ServiceTokens ServiceTokens // nil: there are none
	Scopes        []string      // the names of the endpoints that accept an API key
}

// New returns the module on a database. Close it when the server has stopped.
func New(db *store.DB, o Options) (*Service, error) {
	o.fill()
	s := &Service{
		db: db, options: o,
		hasher:      newHasher(o.Hash, o.HashSlots, !o.HashInChildren, o.Log),
		pairs:       newKeyedSemaphore(onePlace),
		generations: revocable.NewGenerations(db.Remembers),
		tokens:      revocable.NewCache[*verified](maxTokens),
		sessions:    revocable.NewCache[*session](maxTokens),
		keys:        revocable.NewCache[*keyEntry](maxKeys),
		uses:        newPendingUses(),
		keyUses:     &records.Uses{Proof: keyProof, Action: "api_keys.rehash", UpdateUse: updateKeyUse, UpdateHash: updateKeyHash},
	}
	s.networks = newKeyedSemaphore(s.networkPlaces)
	s.topics = s.newTopics()
	s.verifyToken = s.newVerifier()
	db.RegisterSealed(sealedSigningKeys)
	db.RegisterSealed(sealedChallenges)
	db.RegisterMoments(timedRows...)
	db.OnKeyReplaced(s.masterKeyReplaced)
	if o.BreachedPasswords != "" {
		var err error
		if s.breached, err = breached.Open(o.BreachedPasswords); err != nil {
			return nil, fmt.Errorf("auth.breached_passwords_file: %w", err)
		}
	}
	return s, nil
}

// Close writes the pending uses of API keys and sessions, ends the processes that hash passwords, and closes the caches.
func (s *Service) Close(ctx context.Context) error {
	s.hasher.sums.Close(ctx)
	err := errors.Join(s.FlushKeyUse(ctx), s.flushSessionUse(ctx))
	s.tokens.Close()
	s.sessions.Close()
	s.keys.Close()
	return err
}

// Records returns, for the record types of the module, the relations of users to records.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{
		access.Sessions: records.Of(s.db, &sessionTable),
		access.APIKeys:  records.Of(s.db, &keyTable),
	}
}

// maxLoginValue is longer than any credential value.
const maxLoginValue = 320

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	everybody := []string{access.Everyone, access.Registrant}
	users := []string{access.Advisor, access.Customer}
	rows := []endpoint.Endpoint{
		// Callers of these two have no access token yet.
		{Name: "auth.sign_in", Method: http.MethodPost, Path: "/authenticate", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Sign in.",
			Faults:  []apierr.Kind{apierr.InvalidCredentials, apierr.LockedOut},
			Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader, endpoint.TokenHeader}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: Tokens{}},
				{Status: http.StatusAccepted, Says: "The password is right; complete the sign-in with a second factor.", Body: NextStep{}},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.signIn)},
		// Public: the code authenticates. The server hides the address from other machines (server/client_address.go).
		{Name: "auth.sign_in_by_link", Method: http.MethodPost, Path: "/authenticate/local", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Sign in with the link of kontor open, on the machine of the server.",
			Faults:  []apierr.Kind{apierr.ChallengeExpired, apierr.InvalidCredentials, apierr.NotFound},
			Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader, endpoint.TokenHeader}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: Tokens{}},
				{Status: http.StatusAccepted, Says: "The link is right; complete the sign-in with a second factor.", Body: NextStep{}},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.signInByLink)},
		{Name: "auth.refresh", Method: http.MethodPost, Path: "/v1/token/refresh", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Refresh the tokens of a session.",
			Faults:  []apierr.Kind{apierr.InvalidRefresh},
			Handle:  endpoint.JSON(http.StatusOK, s.refresh)},
		{Name: "auth.logout", Method: http.MethodPost, Path: "/v1/logout", PeopleOnly: true, Access: access.SignedIn, Roles: everybody,
			Summary: "Sign out.", WithoutFactor: true, Handle: endpoint.JSON(http.StatusOK, s.logout)},
		{Name: "auth.reauthenticate", Method: http.MethodPost, Path: "/v1/users/{id}/reauthenticate", Subject: access.SelfIn("id"), PeopleOnly: true, Access: access.SignedIn, Roles: everybody,
			Summary: "Authenticate again within a session.", WithoutFactor: true, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.LockedOut, apierr.MethodOnTrial},
			Handle: endpoint.JSON(http.StatusOK, s.reauthenticate)},
		{Name: "auth.reauthenticate_options", Method: http.MethodPost, Path: "/v1/users/{id}/reauthenticate/options", Subject: access.SelfIn("id"), PeopleOnly: true, Access: access.SignedIn, Roles: everybody,
			Summary: "List the ways to authenticate again within a session.", WithoutFactor: true, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.reauthenticateOptions)},
		// Public: its callers may not be able to sign in. The token of the link authenticates them, for this change only.
		{Name: "auth.undo", Method: http.MethodPost, Path: "/authenticate/undo", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Remove a new way to sign in, or restore a deleted one, with the link of the message about it.",
			Faults:  []apierr.Kind{apierr.UndoInvalid},
			Handle:  endpoint.JSON(http.StatusOK, s.undo)},
		{Name: "auth.sessions", Method: http.MethodGet, Path: "/v1/users/{id}/sessions", Roles: users,
			Access: access.On(access.Sessions, access.Read), Summary: "List the sessions of a user.",
			Faults: []apierr.Kind{apierr.UserNotFound}, Doc: endpoint.Doc{Search: sessionList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.sessionsOf)},
		{Name: "auth.end_session", Method: http.MethodDelete, Path: "/v1/users/{id}/sessions/{session_id}", Subject: access.UserIn("id"), Roles: users,
			Access: access.On(access.Sessions, access.Delete), Summary: "End a session.",
			Assurance: endpoint.Fresh.When("the session belongs to another user"),
			Faults:    []apierr.Kind{apierr.UserNotFound, apierr.SessionNotFound}, Handle: endpoint.JSON(http.StatusOK, s.endOneSession)},
		{Name: "auth.create_key", Method: http.MethodPost, Path: "/v1/api-keys",
			Subject: access.NoSubject("API keys hold no rights to records"),
			Access:  access.On(access.APIKeys, access.Create), Assurance: endpoint.SecondFactor, Summary: "Create an API key.",
			Handle: endpoint.JSON(http.StatusCreated, s.createKey)},
		{Name: "auth.keys", Method: http.MethodGet, Path: "/v1/api-keys",
			Access: access.On(access.APIKeys, access.Read), Summary: "List API keys.",
			Doc:    endpoint.Doc{Search: keyList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.listKeys)},
		{Name: "auth.revoke_key", Method: http.MethodDelete, Path: "/v1/api-keys/{id}",
			Subject:   access.NoSubject("API keys hold no rights to records"),
			Access:    access.On(access.APIKeys, access.Delete),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &keyTable, access.Delete),
			Summary: "Revoke an API key.",
			Faults:  []apierr.Kind{apierr.APIKeyNotFound}, Handle: endpoint.JSON(http.StatusOK, s.revokeKey)},
		// Public: the keys are public, and other services verify access tokens with them.
		{Name: "auth.public_keys", Method: http.MethodGet, Path: "/.well-known/jwks.json", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Get the public keys that verify access tokens.",
			Doc: endpoint.Doc{Description: "A JSON Web Key Set (RFC 7517) with Ed25519 keys (RFC 8037). The header of an access token names its key in kid. " +
				"After a rotation, the former key stays in the set until its tokens have expired.",
				Answers: []endpoint.Answer{{Status: http.StatusOK, Media: "application/jwk-set+json", Body: jwkSet{}, Says: "The public keys."}}},
			Handle: endpoint.Raw(nil, s.servePublicKeys)},
		{Name: "auth.public", Method: http.MethodGet, Path: "/v1/public-endpoint", Access: access.APIKey,
			Summary: "Check an API key.", Handle: endpoint.JSON(http.StatusOK, s.public)},
	}
	rows = append(rows, s.factorEndpoints()...)
	return endpoint.Group("Authentication", ratelimit.Private, rows)
}

type signInInput struct {
	UserID   string `json:"user_id" format:"-" example:"anna.keller@example.ch" maxLength:"320" doc:"An e-mail address, a phone number, a user name or the id of the user."`
	Password string `json:"password" format:"password"`
}

// Validate requires both members. The rules for new passwords do not apply: a password that breaks them is wrong, not
// malformed.
func (in *signInInput) Validate(v *apierr.Fields) {
	if in.UserID == "" {
		v.Add("user_id", "invalid.required")
	}
	if utf8.RuneCountInString(in.UserID) > maxLoginValue {
		v.Add("user_id", "invalid.max_length", apierr.Args{"Max": maxLoginValue})
	}
	if in.Password == "" {
		v.Add("password", "invalid.required")
	}
}

type refreshInput struct {
	RefreshToken string `json:"refresh_token"`
}

func (in *refreshInput) Validate(v *apierr.Fields) {
	if in.RefreshToken == "" {
		v.Add("refresh_token", "invalid.required")
	}
}

type sessionInput struct {
	UserID    string `path:"id"`
	SessionID string `path:"session_id"`
}

type createKeyInput struct {
	Name    string      `json:"name" maxLength:"100" example:"Registration form"`
	Scopes  []string    `json:"scopes" required:"false" maxItems:"100" example:"users.register" doc:"Names of the endpoints that the key may call. Without scopes, or with *, it may call all that accept a key."`
	Expires *store.Time `json:"expires_at" example:"2099-12-31T23:00:00.000Z" doc:"When the key expires; without it, never."`
}

func (in *createKeyInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxKeyName)
}

func (s *Service) createKey(ctx context.Context, in createKeyInput) (NewAPIKey, error) {
	return s.CreateKey(ctx, in.Name, KeyLimits{Scopes: in.Scopes, Expires: in.Expires})
}

func (s *Service) listKeys(ctx context.Context, in list.Input) (list.Page[APIKey], error) {
	return s.Keys(ctx, in.Query)
}

func (s *Service) revokeKey(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.options.Texts, "auth.key_revoked"), s.RevokeKey(ctx, in.ID)
}

func (s *Service) public(ctx context.Context, _ endpoint.None) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.options.Texts, "auth.key_valid"), nil
}

// topics are the changes that every node of a shared database receives before they are acknowledged.
type topics struct {
	callers  *store.Topic // a user whose status, roles or sessions have changed: their sessions, and their streams
	sessions *store.Topic // a user whose sessions must be read again; their streams continue
	apiKeys  *store.Topic // API keys; the key does not matter
	signing  *store.Topic // signing keys; the key does not matter
}

func (s *Service) newTopics() topics {
	return topics{
		callers: s.db.Topic("auth.callers", func(userID string) {
			s.generations.End(userID)
			s.options.Changed(userID)
		}),
		sessions: s.db.Topic("auth.sessions", s.generations.End),
		apiKeys:  s.db.Topic("auth.api_keys", func(string) { s.generations.End(keyGeneration) }),
		signing:  s.db.Topic("auth.signing_keys", func(string) { s.signingKeysChanged() }),
	}
}

// Changed invalidates the cached sessions of a user on every node: the transaction changes their status, roles or sessions. Open
// streams that lose their session or right end before the change is answered.
func (s *Service) Changed(tx *store.Tx, userID string) { tx.Announce(s.topics.callers, userID) }

// drop invalidates the cached sessions of a user on every node. Open streams continue.
func (s *Service) drop(tx *store.Tx, userID string) { tx.Announce(s.topics.sessions, userID) }

// loadTries is how often changed signing keys are read before requests have to try.
const loadTries = 3

// signingKeysChanged reads the keys again after a change on any node. If that fails, tokens are rejected as unavailable until they
// could be read.
func (s *Service) signingKeysChanged() {
	if s.signing.Load() == nil {
		return // before Start
	}
	var err error
	for range loadTries {
		if err = s.reloadSigningKeys(context.Background()); err == nil {
			return
		}
	}
	if !errors.Is(err, store.ErrClosed) {
		s.options.Log.Error("cannot read the signing keys; access tokens are rejected until the next successful try", "cause", err)
	}
}
