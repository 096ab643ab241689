package auth_test

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// factors stands for the module of second factors: codes are valid once, and a passkey answers the challenge of its request.
type factors struct {
	mu        sync.Mutex
	methods   map[string][]string // by user
	codes     map[string]string   // unused code → user
	keys      map[string]string   // secret of a passkey → user
	evaluated int
}

func newFactors() *factors {
	return &factors{methods: map[string][]string{}, codes: map[string]string{}, keys: map[string]string{}}
}

func (f *factors) enrol(userID string, methods ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.methods[userID] = methods
}

func (f *factors) code(userID, code string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.codes[code] = userID
	return code
}

func (f *factors) Methods(_ context.Context, _ store.Querier, userID string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.methods[userID]), nil
}

// Trusted returns all methods: none is on trial.
func (f *factors) Trusted(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	return f.Methods(ctx, q, userID)
}

func (f *factors) InUse(ctx context.Context, q store.Querier, roleIDs []string) (bool, error) {
	rows, err := q.Query(ctx, `SELECT user_id, role_id FROM user_roles`)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	used := false
	for rows.Next() {
		var user, role string
		if err := rows.Scan(&user, &role); err != nil {
			return false, err
		}
		methods, _ := f.Methods(ctx, q, user)
		used = used || len(methods) > 0 && slices.Contains(roleIDs, role)
	}
	return used, rows.Err()
}

func (f *factors) Passkeys() bool { return true }

func (f *factors) PasskeyOptions(_ context.Context, userID string) (jsontext.Value, []byte, error) {
	challenge := store.NewID()
	return jsontext.Value(`{"challenge":"` + challenge + `"}`), []byte(userID + "/" + challenge), nil
}

// assertion is what a passkey of the tests answers.
type assertion struct {
	Challenge string `json:"challenge"`
	Secret    string `json:"secret"`
}

func (f *factors) Verify(_ context.Context, userID string, session []byte, a factor.Answer) (factor.Accepted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.evaluated++
	accepted := factor.Accepted{Method: factor.TOTP, AMR: []string{"otp"}}
	if len(a.Passkey) > 0 {
		var given assertion
		if json.Unmarshal(a.Passkey, &given) != nil || string(session) != userID+"/"+given.Challenge {
			return factor.Accepted{}, apierr.InvalidFactor
		}
		accepted.UserID, accepted.Method, accepted.AMR = f.keys[given.Secret], factor.Passkey, []string{"hwk", "user"}
	} else {
		accepted.UserID = f.codes[a.Code+a.RecoveryCode]
	}
	if accepted.UserID == "" || userID != "" && accepted.UserID != userID {
		return factor.Accepted{}, apierr.InvalidFactor
	}
	accepted.Use = func(context.Context, *store.Tx) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(a.Passkey) > 0 {
			return nil
		}
		if f.codes[a.Code+a.RecoveryCode] == "" {
			return apierr.InvalidFactor
		}
		delete(f.codes, a.Code+a.RecoveryCode)
		return nil
	}
	return accepted, nil
}

// assured returns a row for each assurance.
func assured() []endpoint.Endpoint {
	var rows []endpoint.Endpoint
	for path, a := range map[string]endpoint.Assurance{"/any": endpoint.AnySession, "/fresh": endpoint.Fresh, "/factor": endpoint.SecondFactor,
		"/condition": endpoint.SecondFactor.When("the query asks for it")} {
		rows = append(rows, endpoint.Endpoint{
			Name: "test" + path[1:], Method: http.MethodGet, Path: path, Access: access.SignedIn, Roles: []string{access.Customer}, Tag: "Test",
			Limit: ratelimit.Private, Summary: "Test an assurance.", Assurance: a, Handle: endpoint.JSON(http.StatusOK, assure),
		})
	}
	return rows
}

func assure(ctx context.Context, in struct {
	Strict bool `query:"strict"`
}) (endpoint.Message, error) {
	if in.Strict {
		return endpoint.Message{}, endpoint.RequireAssurance(ctx, endpoint.SecondFactor)
	}
	return endpoint.Message{}, nil
}
