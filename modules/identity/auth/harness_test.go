package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/locales"
	"kontor/modules/identity/auth"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

const password = "a long enough pass phrase"

// harness runs the service behind a real listener.
type harness struct {
	*testing.T
	clock          *storetest.Clock
	data           store.Options
	db             *store.DB
	auth           *auth.Service
	server         *server.Server
	events         *recorder
	address        string
	stop           func()
	attackNetworks int // networks that lockOutUnknownNetworks has used
	factors        *factors
	options        []func(*auth.Options)
}

// recorder records reported sign-ins.
type recorder struct{ devices []string }

func (r *recorder) SignedIn(_ context.Context, _ *store.Tx, _, device string, isNew bool) error {
	if isNew {
		device += " (new)"
	}
	r.devices = append(r.devices, device)
	return nil
}

func newHarness(t *testing.T, change ...func(*auth.Options)) *harness {
	t.Helper()
	h := &harness{T: t, clock: storetest.NewClock(), data: storetest.Options(t), events: &recorder{}, factors: newFactors(), options: change}
	h.start()
	return h
}

// users replaces the directory.
type users struct{}

func (users) SetLastLogin(ctx context.Context, tx *store.Tx, userID string) error {
	_, err := tx.Exec(ctx, `UPDATE users SET last_login_at = $2 WHERE id = $1`, userID, tx.Now())
	return err
}

// start opens the data directory and starts the server, with the options of the harness and further ones.
func (h *harness) start(change ...func(*auth.Options)) {
	h.Helper()
	ctx := context.Background()
	log := slog.New(slog.DiscardHandler)
	h.data.Clock, h.data.Log = h.clock, log
	h.db = storetest.OpenAgain(h, h.data)
	texts, err := locales.Load()
	if err != nil {
		h.Fatal(err)
	}
	options := auth.Options{
		Hash: auth.HashCost{MemoryKiB: 64, Passes: 1, Threads: 1}, HashSlots: 64, Events: h.events, Texts: texts, Log: log,
	}
	for _, f := range append(h.options, change...) {
		f(&options)
	}
	if h.auth, err = auth.New(h.db, options); err != nil {
		h.Fatal(err)
	}
	h.auth.Peers.Users = users{}
	h.auth.Peers.Factors = h.factors
	table := append(h.auth.Endpoints(), assured()...)
	if err := h.auth.Start(ctx); err != nil {
		h.Fatal(err)
	}
	grants := map[string][]string{}
	for _, e := range table {
		for _, role := range e.Roles {
			grants[role] = append(grants[role], e.Key())
		}
	}
	policy := &access.Current{}
	policy.Store(access.NewPolicy(access.PolicyData{Endpoints: grants}))
	s, err := server.New(server.Options{
		Endpoints: table, Auth: h.auth, Rights: servertest.AllRights{}, Policy: policy, Texts: texts, Log: log, Now: h.clock.Now,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RequestTime: testenv.Limit(),
	})
	if err != nil {
		h.Fatal(err)
	}
	h.server = s
	address, stop := servertest.Listen(h, s)
	h.address = address
	h.stop = func() {
		stop()
		if err := h.auth.Close(ctx); err != nil {
			h.Error(err)
		}
		if err := h.db.Close(); err != nil {
			h.Error(err)
		}
		h.stop = func() {}
	}
	h.Cleanup(func() { h.stop() }) // before the database is closed
}

// restart stops the service and starts it on the same data, as a new process would.
func (h *harness) restart() {
	h.Helper()
	h.data = storetest.OptionsOf(h, h.db) // with the key after a rotation
	h.stop()
	h.start()
}

// user creates an active user with a validated e-mail address and the password of the tests.
func (h *harness) user(email string, roles ...string) (id string) {
	h.Helper()
	return h.userWithStatus("active", email, roles...)
}

func (h *harness) userWithStatus(status, email string, roles ...string) (id string) {
	h.Helper()
	ctx := context.Background()
	hash, err := h.auth.HashPassword(ctx, password)
	if err != nil {
		h.Fatal(err)
	}
	id = store.NewID()
	if len(roles) == 0 {
		roles = []string{access.Customer}
	}
	h.inTx(func(tx *store.Tx) error {
		now := tx.Now()
		if _, err := tx.Exec(ctx, `
			INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
			VALUES ($1, $2, 'en', $3, $1, $3, $1)`, id, status, now); err != nil {
			return err
		}
		if err := h.auth.SetPassword(ctx, tx, id, hash); err != nil {
			return err
		}
		for _, role := range roles {
			if err := h.addRole(tx, id, role); err != nil {
				return err
			}
		}
		return h.addCredential(tx, id, email, true)
	})
	return id
}

func (h *harness) addCredential(tx *store.Tx, userID, email string, validated bool) error {
	var at *store.Time
	if now := tx.Now(); validated {
		at = &now
	}
	_, err := tx.Exec(context.Background(), `
		INSERT INTO credentials (id, user_id, type, value, value_key, validated, validated_at, created_at, created_by)
		VALUES ($1, $2, 'email', $3, $3, $4, $5, $6, $2)`, store.NewID(), userID, email, validated, at, tx.Now())
	return err
}

func (h *harness) addRole(tx *store.Tx, userID, role string) error {
	ctx := context.Background()
	if _, err := tx.Exec(ctx, `
		INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
		VALUES ($1, $1, $1, 0, $1, 0, $1) ON CONFLICT (id) DO NOTHING`, role); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, 0, $1)`, userID, role)
	return err
}

func (h *harness) inTx(f func(tx *store.Tx) error) {
	h.Helper()
	if err := h.db.InTx(context.Background(), f); err != nil {
		h.Fatal(err)
	}
}

// answer is a response with the decoded members of its JSON object.
type answer struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

func (a answer) text(member string) string {
	text, _ := a.json[member].(string)
	return text
}

// call sends a request with headers, in pairs of name and value. A body other than nil is sent as JSON.
func (h *harness) call(method, path string, body any, headers ...string) answer {
	h.Helper()
	a, err := h.try(method, path, body, headers...)
	if err != nil {
		h.Fatal(err)
	}
	return a
}

// try is call for goroutines: it returns errors, because only the test's goroutine may stop the test.
func (h *harness) try(method, path string, body any, headers ...string) (answer, error) {
	r, err := servertest.NewClient(h, h.server, h.address).With(headers...).Try(method, path, body)
	a := answer{status: r.Status, header: r.Header, body: r.Body}
	_ = json.Unmarshal([]byte(a.body), &a.json) // a body that is not an object has no members
	return a, err
}

// signIn sends a sign-in request.
func (h *harness) signIn(value, password string, headers ...string) answer {
	h.Helper()
	return h.call("POST", "/authenticate", map[string]string{"user_id": value, "password": password}, headers...)
}

// mustSignIn signs in with the right password and stops the test unless that succeeds.
func (h *harness) mustSignIn(value string, headers ...string) answer {
	h.Helper()
	a := h.signIn(value, password, headers...)
	if a.status != http.StatusOK {
		h.Fatalf("sign in as %s: %d %s", value, a.status, a.body)
	}
	return a
}

// getSessions requests the sessions of a user.
func (h *harness) getSessions(userID, token string) answer {
	h.Helper()
	return h.call("GET", "/v1/users/"+userID+"/sessions", nil, "Authorization", "Bearer "+token)
}

func (h *harness) expect(what string, got answer, status int, code string) {
	h.Helper()
	if got.status != status || got.text("code") != code {
		h.Errorf("%s: got %d %q, want %d %q; %s", what, got.status, got.text("code"), status, code, got.body)
	}
}

// from returns the header of a client address.
func from(network string) []string { return []string{"X-Forwarded-For", network} }

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func isKind(err error, kind apierr.Kind) bool { return errors.Is(apierr.Of(err), kind) && err != nil }
