// Package auth knows who is calling: passwords, sign-in with cooling-off, sessions and their tokens, API keys.
//
// The tables are the truth. What is kept in memory is only what can be read again: verified tokens, active sessions,
// valid API keys; a revocation makes what was read before it worthless, whatever the cache still holds.
//
// Accounts and credentials belong to the module users and are read here, never written, with one exception: a sign-in
// sets last_login_at of the user in its own transaction.
package auth

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Events hears of what others may want to tell the user.
type Events interface {
	// SignedIn is called in the transaction of a sign-in. device is the X-Device-ID, empty when there was none; isNew
	// says that the user has signed in before, but not from this device.
	SignedIn(ctx context.Context, tx *store.Tx, userID, device string, isNew bool) error
}

// Options are the settings of the module. What is zero has the default of the setting.
type Options struct {
	AccessToken       time.Duration // how long an access token is good
	RefreshToken      time.Duration // how long a refresh token is good
	FreeAttempts      int           // failures without a pause
	BasePause         time.Duration // the first pause after them
	MaxPause          time.Duration // the longest
	PasswordMinLength int           // in characters
	Hash              HashCost
	HashSlots         int // hashes at the same time; the number of cores
	Audience          string

	// LoginKey brings a credential value, as it is typed, to the form that credentials.value_key has.
	LoginKey func(value string) string
	// FormerKey is the form that value_key had before look-alikes were made one. nil: the same as LoginKey.
	FormerKey func(value string) string
	Events    Events // nil: nobody listens
	// Changed is called after the commit of a change to a user's status, roles or sessions and before its answer: what
	// outlives a request, such as an event stream, ends there. nil: nothing does.
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

// keysAsTexts stands in where no texts are given.
type keysAsTexts struct{}

func (keysAsTexts) Text(_, key string, _ map[string]any) string { return key }

// Service is the module.
type Service struct {
	db      *store.DB
	options Options

	signing     ed25519.PrivateKey
	verifyToken fiber.Handler
	hasher      *hasher
	pairs       *turns
	networks    *turns

	generations *generations
	tokens      *memory[*verified]
	sessions    *memory[*session]
	keys        *memory[*keyEntry]
	keyUse      sync.Map // id of an API key → *atomic.Int64, its latest use
	scopes      []string // that an API key may have
}

// New builds the module on a database. Close it when the server has stopped.
func New(db *store.DB, o Options) (*Service, error) {
	o.fill()
	s := &Service{
		db: db, options: o,
		signing:     ed25519.NewKeyFromSeed(db.DeriveKey("access tokens", ed25519.SeedSize)),
		hasher:      newHasher(o.Hash, o.HashSlots),
		pairs:       newTurns(1),
		networks:    newTurns(networkAtOnce),
		generations: newGenerations(),
	}
	s.verifyToken = s.newVerifier()
	var err error
	if s.tokens, err = newMemory[*verified](maxTokens); err == nil {
		s.sessions, err = newMemory[*session](maxTokens)
	}
	if err == nil {
		s.keys, err = newMemory[*keyEntry](maxKeys)
	}
	if err != nil {
		return nil, fmt.Errorf("build the caches of sign-in: %w", err)
	}
	return s, nil
}

// SetEvents names who is told of sign-ins, for one who needs the service himself to be built. Call it before the first request.
func (s *Service) SetEvents(events Events) { s.options.Events = events }

// Close writes what is still in memory and ends the caches.
func (s *Service) Close(ctx context.Context) error {
	err := s.FlushKeyUse(ctx)
	s.tokens.close()
	s.sessions.close()
	s.keys.close()
	return err
}

// Records tells for the record types of the module what a user is to a record.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{
		access.Sessions: standings[Session]{s.db, &sessionTable},
		access.APIKeys:  standings[APIKey]{s.db, &keyTable},
	}
}

// standings answers for the records of one table.
type standings[T any] struct {
	db    *store.DB
	table *records.Table[T]
}

// Standings tells for each id that exists what the user is to the record.
func (r standings[T]) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return r.table.Standings(ctx, r.db, userID, ids)
}
