package serviceaccounts_test

import (
	"bufio"
	"context"
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// Tokens are valid after rotations of the master key. Their first use replaces the stored hash.
func TestRotation_KeepsTokens(t *testing.T) {
	s := servertest.Start(t)
	_, k, used := backOffice(t, s)
	unused := issue(t, s, account(t, s, access.Advisor), nil)
	used.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	hash := func(id string) (hash string) {
		if err := s.DB.QueryRow(t.Context(), `SELECT token_hash FROM service_tokens WHERE id = $1`, id).Scan(&hash); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	first := hash(k.ID)
	for _, compromised := range []bool{false, true} {
		rotation := storetest.Rotation(t, s.DB)
		rotation.Compromised = compromised
		if _, err := s.DB.RotateMasterKey(t.Context(), rotation); err != nil {
			t.Fatal(err)
		}
	}
	used.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	if err := s.Services.FlushUse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hash(k.ID) == first {
		t.Error("the hash is still under the former key")
	}
	if err := s.Services.ForgetOlderHashes(t.Context()); err != nil {
		t.Fatal(err)
	}
	unused.with(s).Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK) // its former key was kept for it
	if err := s.Services.FlushUse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Services.ForgetOlderHashes(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, client := range []*servertest.Client{used, unused.with(s)} {
		client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	}
}

// An open stream ends with the token that opened it, and not with another token of the account.
func TestStream_EndsWithItsToken(t *testing.T) {
	s := servertest.Start(t)
	accountID, k, _ := backOffice(t, s)
	other := issue(t, s, accountID, nil)
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit()) // heartbeats come as long as a stream is open
	defer cancel()
	open := func(k token) *bufio.Reader {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+"/v1/notifications/sse", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+k.Text)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("the stream got %d", answer.StatusCode)
		}
		body := bufio.NewReader(answer.Body)
		if line, err := body.ReadString('\n'); err != nil {
			t.Fatalf("the stream begins with %q: %v", line, err)
		}
		return body
	}
	s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": accountID, "endpoint": "GET /v1/notifications/sse"})
	ends, stays := open(k), open(other)
	path := "/v1/service-accounts/" + accountID
	s.Admin().Do("DELETE", path+"/tokens/"+k.ID, nil).Expect(t, http.StatusOK)
	readToEnd(ctx, t, ends)
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": accountID, "endpoint": "GET /v1/audit"}).Expect(t, http.StatusCreated)
	if _, err := stays.Peek(1); err != nil {
		t.Errorf("the stream of the other token ended: %v", err)
	}
	s.Admin().Do("DELETE", path, nil).Expect(t, http.StatusOK)
	readToEnd(ctx, t, stays)
}

// readToEnd returns when the server has ended a stream.
func readToEnd(ctx context.Context, t *testing.T, stream *bufio.Reader) {
	t.Helper()
	for err := error(nil); err == nil; {
		_, err = stream.ReadByte()
	}
	if ctx.Err() != nil {
		t.Error("the stream did not end")
	}
}

// A hash that was written to the database makes no token.
func TestHash_IsKeyed(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck()
	_, k, client := backOffice(t, s)
	servertest.Exec(t, s.DB, `UPDATE service_tokens SET token_hash = '' WHERE id = $1`, k.ID)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusUnauthorized)
}
