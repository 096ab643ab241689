package notifications_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/modules/notifications"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/fault"
	"kontor/server/servertest"
	"kontor/store"
)

// roles is an authenticator for which the token is the id of the role.
type roles struct{}

func (roles) Known(token string) (*access.Caller, bool) {
	return &access.Caller{UserID: token, Roles: []string{token}}, token != ""
}
func (roles) Bearer(*fiber.Ctx) (*access.Caller, error) { return nil, fault.Unauthorized }
func (roles) APIKey(context.Context, string) (*access.Caller, error) {
	return nil, fault.Unauthorized
}

// serve starts a server and gives a function that asks for the list of deliveries with a token.
func serve(t *testing.T, s *notifications.Service) func(token, query string) (int, map[string]any) {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	policy := &access.Current{}
	// An advisor who may call the endpoint, and still may not read what he has no right to.
	policy.Store(access.NewPolicy(access.PolicyData{Endpoints: map[string][]string{access.Advisor: {"GET /v1/notifications/deliveries"}}}))
	_, address := servertest.Serve(t, server.Options{Endpoints: s.Endpoints(), Auth: roles{}, Policy: policy, Texts: texts, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
	return func(token, query string) (int, map[string]any) {
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/v1/notifications/deliveries"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal(text, &body); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return response.StatusCode, body
	}
}

func TestDeliveries_AreForAdministrators(t *testing.T) {
	s, db := newService(t)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, recipient := range []string{"Anna@bank.example", "beat@bank.example"} {
			if _, err := s.Enqueue(t.Context(), tx, notifications.Delivery{UserID: store.NewID(), Channel: notifications.Email,
				Recipient: recipient, Subject: "Hello", Text: "Hello " + recipient, HTML: "<p>", Secret: true}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := serve(t, s)
	if status, _ := ask("", ""); status != 401 {
		t.Errorf("nobody: %d", status)
	}
	for _, role := range []string{access.Customer, access.Advisor} {
		if status, body := ask(role, ""); status != 403 || body["code"] != "common.rbac_no_rec_access" {
			t.Errorf("%s: %d %v", role, status, body)
		}
	}
	status, body := ask(access.Administrator, "?search.to=ANNA@bank.example&search.status=sent")
	if status != 200 || body["total"] != 1.0 || body["total_unfiltered"] != 2.0 {
		t.Fatalf("got %d %v", status, body)
	}
	row := body["data"].([]any)[0].(map[string]any)
	for _, member := range []string{"id", "notification_id", "user_id", "channel", "to", "subject", "text", "status", "attempts", "last_error",
		"next_attempt_at", "created_at", "sent_at"} {
		if _, ok := row[member]; !ok {
			t.Errorf("%s is missing in %v", member, row)
		}
	}
	if len(row) != 13 || row["text"] != "Hello Anna@bank.example" || row["notification_id"] != nil || row["attempts"] != 0.0 {
		t.Errorf("got %v", row)
	}
	if status, body := ask(access.Administrator, "?search.text=x"); status != 500 || body["code"] != "query_m.invalid_search_field" {
		t.Errorf("got %d %v", status, body)
	}
}
