package app_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// formerForm matches a value that is sealed with generation 0.
var formerForm = regexp.MustCompile(`^1\.[A-Za-z0-9_-]{38,}$`)

// TestRotation_LeavesNoValueOfTheFormerKey rotates the master key of a database on which every endpoint was called. No column of
// any table may hold a value of the former generation: a module that does not register a column fails here.
func TestRotation_LeavesNoValueOfTheFormerKey(t *testing.T) {
	s := newScenario(t)
	s.run()
	if len(sealedColumns(t, s.server.DB)) < 3 {
		t.Fatalf("only %v are sealed: the scenario has lost its sealed values", sealedColumns(t, s.server.DB))
	}
	rotate(t, s.server, storetest.Rotation(t, s.server.DB))
	for column, n := range sealedColumns(t, s.server.DB) {
		t.Errorf("%s: %d values of the former key", column, n)
	}
	// The scenario runs again on what the rotation has left. Its records are compared with the audit trail at the end.
	state, err := s.server.DB.KeyState(t.Context())
	if err != nil || state.Resealing || len(state.Remaining) > 0 {
		t.Errorf("got %+v, %v", state, err)
	}
	if _, err := checkRecords(t, storetest.OptionsOf(t, s.server.DB)); err != nil {
		t.Error(err)
	}
}

func rotate(t *testing.T, s *servertest.Server, r store.Rotation) {
	t.Helper()
	if _, err := s.DB.RotateMasterKey(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// sealedColumns counts the values of generation 0 by table and column.
func sealedColumns(t *testing.T, db *store.DB) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, table := range storetest.Tables(t, db) {
		for _, column := range storetest.TextColumns(t, db, table) {
			for _, value := range texts(t, db, fmt.Sprintf(`SELECT COALESCE("%s", '') FROM "%s"`, column, table)) {
				if formerForm.MatchString(value) {
					found[table+"."+column]++
				}
			}
		}
	}
	return found
}

func texts(t *testing.T, db *store.DB, statement string) (all []string) {
	t.Helper()
	rows, err := db.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// After a rotation, tokens, sessions, API keys, documents and stored answers work as before.
func TestRotation_ClientsContinue(t *testing.T) {
	s := servertest.Start(t)
	admin, keyed := s.Admin(), s.Keyed()
	create := map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"}
	id := admin.With("Idempotency-Key", "one").Create("/v1/customers", create)
	passport := map[string]any{"documents": []map[string]any{{"type": "passport", "number": "X1234567", "expiry_date": "2099-05-01", "country": "CHE"}}}
	path := "/v1/customers/" + id + "/kyc"
	admin.Do("PUT", path, passport).Expect(t, http.StatusOK)
	keyed.Do("GET", "/v1/public-endpoint", nil).Expect(t, http.StatusOK)
	for range 2 {
		rotate(t, s, storetest.Rotation(t, s.DB))
		admin.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
		keyed.Do("GET", "/v1/public-endpoint", nil).Expect(t, http.StatusOK)
		replay := admin.With("Idempotency-Key", "one").Do("POST", "/v1/customers", create)
		replay.Expect(t, http.StatusCreated)
		if replay.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the answer was not replayed")
		}
		create["first_name"] = "Berta"
		admin.With("Idempotency-Key", "one").Do("POST", "/v1/customers", create).Expect(t, http.StatusUnprocessableEntity)
		create["first_name"] = "Anna"
		// The same document again is the same document.
		admin.Do("PUT", path, passport).Expect(t, http.StatusOK)
		if got := admin.Do("GET", path, nil).Expect(t, http.StatusOK).Body; strings.Count(got, "X1234567") != 1 {
			t.Errorf("documents %s", got)
		}
	}
	if n, err := s.Auth.OlderKeys(t.Context()); err != nil || n != 1 {
		t.Errorf("%d API keys have a former hash, %v", n, err)
	}
	// The hash of a used API key is replaced, and then the former keys of hashes are not needed any more.
	s.Keyed().Do("GET", "/v1/public-endpoint", nil).Expect(t, http.StatusOK)
	if err := s.Auth.FlushKeyUse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Auth.ForgetOlderHashes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Auth.OlderKeys(t.Context()); err != nil || n != 0 || len(s.DB.KeyedOlder("api key", nil)) != 0 {
		t.Errorf("%d API keys have a former hash, %v", n, err)
	}
	s.Keyed().Do("GET", "/v1/public-endpoint", nil).Expect(t, http.StatusOK)
}

// --compromised rejects every access token from before, also those in the cache, and no user is signed out.
func TestRotation_Compromised(t *testing.T) {
	s := servertest.Start(t)
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	s.Anonymous().Do("POST", "/authenticate", map[string]string{"user_id": servertest.AdminEmail, "password": servertest.AdminPassword}).
		Expect(t, http.StatusOK).Into(t, &tokens)
	me := func(token string) servertest.Response {
		return s.Anonymous().With("Authorization", "Bearer "+token).Do("GET", "/v1/users/me", nil)
	}
	me(tokens.Access).Expect(t, http.StatusOK)
	rotate(t, s, storetest.Rotation(t, s.DB))
	me(tokens.Access).Expect(t, http.StatusOK)
	compromised := storetest.Rotation(t, s.DB)
	compromised.Compromised = true
	rotate(t, s, compromised)
	me(tokens.Access).Expect(t, http.StatusUnauthorized)
	s.Anonymous().Do("POST", "/v1/token/refresh", map[string]string{"refresh_token": tokens.Refresh}).Expect(t, http.StatusOK).Into(t, &tokens)
	me(tokens.Access).Expect(t, http.StatusOK)
	if keys := s.Auth.SigningKeys(); len(keys) != 1 || keys[0].RetiredAt != nil {
		t.Errorf("got %+v", keys)
	}
}

// RevokeUnusedKeys revokes only keys without a use since the rotation and since a time.
func TestRotation_RevokesUnusedKeys(t *testing.T) {
	s := servertest.Start(t)
	ctx := context.Background()
	rotate(t, s, storetest.Rotation(t, s.DB))
	if n, err := s.Auth.RevokeUnusedKeys(ctx, s.DB.Now().Add(-1)); err != nil || n != 0 {
		t.Errorf("%d keys, %v", n, err)
	}
	s.Keyed().Do("GET", "/v1/public-endpoint", nil).Expect(t, http.StatusOK)
	if n, err := s.Auth.RevokeUnusedKeys(ctx, s.DB.Now().Add(1)); err != nil || n != 0 {
		t.Errorf("a key that was used: %d, %v", n, err)
	}
	s.Keyed().Do("GET", "/v1/public-endpoint", nil).Expect(t, http.StatusOK)
	if _, err := inspect.Check(ctx, storetest.Source(storetest.OptionsOf(t, s.DB)), nil); err != nil {
		t.Error(err)
	}
}
