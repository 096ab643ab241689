// Package serviceaccounts lets programs call the API as users of their own. A service account is a user of the kind service, with
// roles and grants like a person. It has no password, credentials, second factor or sessions; it presents a token.
//
// A token may call what both its scopes and the grants of its account allow, from its networks, until it expires. An account has
// several tokens at a time, so that they can be replaced without a break. The text of a token is shown once; the table has a keyed
// hash. Verified tokens are cached in memory: a revocation, a disabled account and changed roles count for the very next request.
//
// A program cannot prove that a person is present. So service accounts are refused wherever a recent authentication or a second
// factor is required, and they cannot create further accounts, tokens, roles or grants.
package serviceaccounts

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/revocable"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Users is what the module needs from the directory.
type Users interface {
	// Create stores the user of a service account with roles, and returns its id. It returns apierr.InvalidInput for unknown
	// roles, and apierr.GrantNotHeld for roles that the caller does not hold.
	Create(ctx context.Context, tx *store.Tx, name string, roles []string) (id string, err error)
	// Change changes name and status of the user; nil stays. It returns apierr.RecordErased.
	Change(ctx context.Context, tx *store.Tx, id string, name, status *string) error
	// Administrators returns the ids of the active people with the role Administrator.
	Administrators(ctx context.Context, q store.Querier) ([]string, error)
}

// Auth is what the module needs from sign-in.
type Auth interface {
	// Changed reports that the transaction changes what a user may do. After the commit it calls [Service.Forget], and ends the
	// streams of the user that lost their right.
	Changed(tx *store.Tx, userID string)
}

// Notifier is what the module needs from notifications.
type Notifier interface {
	Notify(ctx context.Context, tx *store.Tx, e event.Event) error
}

// Options are the settings of the module.
type Options struct {
	// CheckHolds returns apierr.GrantNotHeld unless the caller holds every right of a user.
	CheckHolds func(ctx context.Context, q store.Querier, userID string) error
	Texts      endpoint.Texts
	Log        *slog.Logger
}

// maxCached is the number of verified tokens in memory.
const maxCached = 4 << 10

// Service is the module.
type Service struct {
	Options
	db       *store.DB
	users    Users
	auth     Auth
	notifier Notifier

	scopes      []string // names of the endpoints that a token may be for
	generations *revocable.Generations
	texts       *revocable.Cache[*verified] // by the text of the token
	tokens      *revocable.Cache[*verified] // by its id, for streams
	uses        sync.Map                    // id of a token → *atomic.Int64 with the time of its latest use
	rehash      sync.Map                    // id of a token → rehashed, until it is written
}

// New returns the module on a database. Close it when the server has stopped.
func New(db *store.DB, users Users, auth Auth, notifier Notifier, o Options) (*Service, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{Options: o, db: db, users: users, auth: auth, notifier: notifier, generations: revocable.NewGenerations(db.Remembers)}
	var err error
	if s.texts, err = revocable.NewCache[*verified](maxCached); err == nil {
		s.tokens, err = revocable.NewCache[*verified](maxCached)
	}
	return s, err
}

// SetScopes registers the endpoints that accept tokens of service accounts. Call it before the first request.
func (s *Service) SetScopes(table []endpoint.Endpoint) {
	for _, e := range table {
		if e.ForMachines() {
			s.scopes = append(s.scopes, e.Name)
		}
	}
	slices.Sort(s.scopes)
}

// Close writes the pending uses and closes the caches.
func (s *Service) Close(ctx context.Context) error {
	err := s.FlushUse(ctx)
	s.texts.Close()
	s.tokens.Close()
	return errors.Join(err)
}

// Records returns the relations of users to service accounts.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{access.Services: records.Of(s.db, &accountTable)}
}
