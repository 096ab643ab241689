// Package auth authenticates callers: passwords, sign-in with lockouts, sessions and their tokens, and API keys.
//
// The tables are authoritative. Verified tokens, active sessions and valid API keys are cached in memory. A revocation
// invalidates entries that were read before it, whatever the cache still holds, on every node of a shared database (announce.go).
//
// Users and credentials belong to the module directory. Sign-in reads them through its views; [Users] records the time of a
// sign-in in the transaction that opens the session.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/identity/auth/breached"
	"kontor/modules/kit/records"
	"kontor/modules/kit/revocable"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
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
	setDefault(&o.AccessToken, time.Hour)
	setDefault(&o.RefreshToken, 24*time.Hour)
	setDefault(&o.FreeAttempts, 5)
	setDefault(&o.BasePause, 2*time.Second)
	setDefault(&o.MaxPause, 900*time.Second)
	setDefault(&o.PasswordMinLength, 12)
	setDefault(&o.Hash, DefaultHashCost)
	setDefault(&o.HashSlots, runtime.NumCPU())
	setDefault(&o.Audience, "kontor-api")
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
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
	keyUse      sync.Map // id of an API key → *atomic.Int64 with the time of its latest use
	rehash      sync.Map // id of an API key → rehashed, until it is written
}

// Peers are what sign-in needs of modules that are built later, because they need sign-in.
type Peers struct {
	Users         Users
	Factors       Factors // nil: no user has a second factor
	Provider      Provider
	ProviderName  string                         // of the operator's provider, for the sign-in screen; empty: none
	Methods       map[signin.Kind]signin.Methods // the modules that own the methods of sign-in
	ServiceTokens ServiceTokens                  // nil: there are none
	Scopes        []string                       // the names of the endpoints that accept an API key
}

// New returns the module on a database. Close it when the server has stopped.
func New(db *store.DB, o Options) (*Service, error) {
	o.fill()
	s := &Service{
		db: db, options: o,
		hasher:      newHasher(o.Hash, o.HashSlots, !o.HashInChildren, o.Log),
		pairs:       newKeyedSemaphore(onePlace),
		generations: revocable.NewGenerations(db.Remembers),
		uses:        newPendingUses(),
	}
	s.networks = newKeyedSemaphore(s.networkPlaces)
	s.topics = s.newTopics()
	s.verifyToken = s.newVerifier()
	db.RegisterSealed(sealedSigningKeys)
	db.RegisterSealed(sealedChallenges)
	db.OnKeyReplaced(s.masterKeyReplaced)
	var err error
	if o.BreachedPasswords != "" {
		if s.breached, err = breached.Open(o.BreachedPasswords); err != nil {
			return nil, fmt.Errorf("auth.breached_passwords_file: %w", err)
		}
	}
	if s.tokens, err = revocable.NewCache[*verified](maxTokens); err == nil {
		s.sessions, err = revocable.NewCache[*session](maxTokens)
	}
	if err == nil {
		s.keys, err = revocable.NewCache[*keyEntry](maxKeys)
	}
	if err != nil {
		return nil, fmt.Errorf("build the caches of sign-in: %w", err)
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
