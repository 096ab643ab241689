package directory_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// signIn replaces the module auth.
type signIn struct {
	db        *store.DB
	mu        sync.Mutex
	sessions  map[string]string // token → user
	passwords map[string]string // user → password
	changed   []string          // users whose rights changed
	stale     map[string]bool   // tokens of sessions that require re-authentication
	owner     signin.Methods    // the only ones
}

// Prove accepts every proof. The tests of the rule are those of the modules app and factors.
func (a *signIn) Prove(_ context.Context, p signin.Proof) error {
	if p.Given() == 0 {
		return apierr.ProofRequired
	}
	return nil
}

func (a *signIn) NewUndo(signin.Kind, string, string) (string, func(context.Context, *store.Tx) error) {
	return "/undo#token", func(context.Context, *store.Tx) error { return nil }
}

func (a *signIn) NewRestore(string, string, string) (string, func(context.Context, *store.Tx) error) {
	return a.NewUndo("", "", "")
}

func (a *signIn) CheckRemoval(ctx context.Context, q store.Querier, userID string, trustedFrom store.Time) error {
	methods, err := a.owner.OnTrial(ctx, q, userID)
	for _, m := range methods {
		if q.Now() >= trustedFrom && q.Now() < m.TrustedFrom && !m.Harmless {
			return apierr.OlderMethodKept.Detail("until", m.TrustedFrom)
		}
	}
	return err
}

func (a *signIn) DropOnTrial(ctx context.Context, tx *store.Tx, userID string) error {
	methods, err := a.owner.OnTrial(ctx, tx, userID)
	for _, m := range methods {
		if err := a.owner.Drop(ctx, tx, m, false); err != nil {
			return err
		}
	}
	return err
}

func (a *signIn) Known(string, netip.Addr) (*access.Caller, bool) { return nil, false }

func (a *signIn) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	_, token, _ := strings.Cut(c.Get("Authorization"), " ")
	a.mu.Lock()
	userID, ok := a.sessions[token]
	a.mu.Unlock()
	if !ok {
		return nil, apierr.Unauthorized
	}
	caller := access.Caller{UserID: userID, SessionID: token}
	if !a.stale[token] {
		caller.SignedIn.At = a.db.Now().Std()
	}
	rows, err := a.db.Query(context.Background(), `SELECT role_id FROM user_roles WHERE user_id = $1`, userID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var role string
		if err := rows.Scan(&role); err != nil {
			return nil, err
		}
		caller.Roles = append(caller.Roles, role)
	}
	caller.Roles = access.HeldRoles(caller.Roles, true)
	return &caller, rows.Err()
}

func (a *signIn) Session(_ context.Context, caller *access.Caller) (*access.Caller, error) {
	return caller, nil
}

func (a *signIn) APIKey(_ context.Context, key string) (*access.Caller, error) {
	if key != apiKey {
		return nil, apierr.Unauthorized
	}
	return &access.Caller{KeyID: "key"}, nil
}

func (a *signIn) PasswordPrinted(context.Context, store.Querier, string) (bool, error) {
	return false, nil
}

func (a *signIn) CheckPassword(problems *apierr.Fields, field, password string, personal ...string) {
	switch {
	case password == "":
		problems.Add(field, "invalid.required")
	case len(password) < 12:
		problems.Add(field, "invalid.min_length", apierr.Args{"Min": 12})
	case slices.Contains(personal, password):
		problems.Add(field, "invalid.required")
	}
}

func (a *signIn) HashPassword(_ context.Context, password string) (string, error) {
	return "hash of " + password, nil
}

func (a *signIn) VerifyPassword(_ context.Context, userID, password string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.passwords[userID] != "hash of "+password {
		return apierr.InvalidCredentials
	}
	return nil
}

func (a *signIn) TrustNetwork(context.Context, *store.Tx, string) error { return nil }

func (a *signIn) SetPassword(_ context.Context, tx *store.Tx, userID, hash string) error {
	a.after(tx, func() { a.passwords[userID] = hash })
	return nil
}

func (a *signIn) OpenSession(_ context.Context, tx *store.Tx, userID string) (string, int, error) {
	token := store.NewID()
	a.after(tx, func() { a.sessions[token] = userID })
	return token, 3600, nil
}

func (a *signIn) EndSessions(_ context.Context, tx *store.Tx, userID, except string) error {
	a.after(tx, func() {
		for token, user := range a.sessions {
			if user == userID && token != except {
				delete(a.sessions, token)
			}
		}
	})
	return nil
}

func (a *signIn) Changed(tx *store.Tx, userID string) {
	a.after(tx, func() { a.changed = append(a.changed, userID) })
}

func (a *signIn) after(tx *store.Tx, f func()) {
	tx.AfterCommit(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		f()
	})
}

func (a *signIn) hasPassword(userID, password string) bool {
	return a.VerifyPassword(context.Background(), userID, password) == nil
}
