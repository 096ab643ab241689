package auth_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/store"
)

func (h *harness) logout(token string) answer {
	h.Helper()
	return h.call("POST", "/v1/logout", nil, "Authorization", "Bearer "+token)
}

func TestLogout_TakesEffectAtOnceAndSurvivesARestart(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	here, there := h.mustSignIn("anna@example.ch"), h.mustSignIn("anna@example.ch")
	h.expect("before", h.getSessions(anna, here.text("access_token")), 200, "")
	h.expect("logout", h.logout(here.text("access_token")), 200, "")
	for range 2 {
		h.expect("after", h.getSessions(anna, here.text("access_token")), 401, "common.unauthorized")
		h.expect("logout again", h.logout(here.text("access_token")), 401, "common.unauthorized")
		h.expect("refresh", h.refresh(here.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
		h.expect("another session", h.getSessions(anna, there.text("access_token")), 200, "")
		h.restart()
	}
}

func TestUnauthorized_NamesTheScheme(t *testing.T) {
	h := newHarness(t)
	a := h.call("POST", "/v1/logout", nil)
	h.expect("no token", a, 401, "common.unauthorized")
	if a.header.Get("WWW-Authenticate") != `Bearer realm="kontor"` {
		t.Errorf("WWW-Authenticate %q", a.header.Get("WWW-Authenticate"))
	}
}

func TestSessions_ListAndEnd(t *testing.T) {
	h := newHarness(t)
	anna, bruno := h.user("anna@example.ch"), h.user("bruno@example.ch")
	h.user("chief@example.ch", access.Administrator)
	laptop, phone := h.mustSignIn("anna@example.ch", "X-Device-ID", "laptop"), h.mustSignIn("anna@example.ch", "X-Device-ID", "phone")
	stranger, admin := h.mustSignIn("bruno@example.ch").text("access_token"), h.mustSignIn("chief@example.ch").text("access_token")

	list := h.getSessions(anna, laptop.text("access_token"))
	h.expect("own sessions", list, 200, "")
	rows, _ := list.json["data"].([]any)
	if len(rows) != 2 || list.json["total"] != 2.0 || list.json["has_more"] != false {
		t.Fatalf("got %s", list.body)
	}
	var phoneID string
	for _, row := range rows {
		row := row.(map[string]any)
		if current := row["device_id"] == "laptop"; row["current"] != current || row["user_id"] != anna {
			t.Errorf("got %v", row)
		}
		if row["device_id"] == "phone" {
			phoneID = row["id"].(string)
		}
	}
	if strings.Contains(list.body, "token") || strings.Contains(list.body, "hash") {
		t.Errorf("secrets in %s", list.body)
	}
	end := func(user, id, token string) answer {
		return h.call("DELETE", "/v1/users/"+user+"/sessions/"+id, nil, "Authorization", "Bearer "+token)
	}
	h.expect("list of a stranger", h.getSessions(anna, stranger), 403, "common.rbac_no_rec_access")
	h.expect("list of an administrator", h.getSessions(anna, admin), 200, "")
	h.expect("list of nobody", h.getSessions(store.NewID(), admin), 404, "users.user_not_found")
	h.expect("ended by a stranger", end(anna, phoneID, stranger), 403, "common.rbac_no_rec_access")
	h.expect("of another user", end(bruno, phoneID, admin), 404, "auth_m.session_not_found")
	h.expect("of nobody", end(store.NewID(), phoneID, admin), 404, "users.user_not_found")
	h.expect("unknown", end(anna, store.NewID(), laptop.text("access_token")), 404, "auth_m.session_not_found")
	h.expect("no id", end(anna, "phone", laptop.text("access_token")), 400, "common.invalid_input")
	h.expect("still there", h.getSessions(anna, phone.text("access_token")), 200, "")
	h.expect("ended", end(anna, phoneID, laptop.text("access_token")), 200, "")
	h.expect("gone", h.getSessions(anna, phone.text("access_token")), 401, "common.unauthorized")
	h.expect("ended before", end(anna, phoneID, admin), 404, "auth_m.session_not_found")
	if list := h.getSessions(anna, laptop.text("access_token")); list.json["total"] != 1.0 {
		t.Errorf("got %s", list.body)
	}
}

// Changes to a user by another module apply to the next request of each session of that user.
func TestChanged_TakesEffectOnTheNextRequest(t *testing.T) {
	h := newHarness(t)
	anna, bruno := h.user("anna@example.ch"), h.user("bruno@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	ctx := context.Background()
	h.expect("before", h.getSessions(bruno, token), 403, "common.rbac_no_rec_access")
	h.inTx(func(tx *store.Tx) error {
		h.auth.Changed(tx, anna)
		return h.addRole(tx, anna, access.Administrator)
	})
	h.expect("as an administrator", h.getSessions(bruno, token), 200, "")
	h.inTx(func(tx *store.Tx) error {
		h.auth.Changed(tx, anna)
		_, err := tx.Exec(ctx, `UPDATE users SET status = 'disabled' WHERE id = $1`, anna)
		return err
	})
	h.expect("disabled", h.getSessions(anna, token), 401, "common.unauthorized")
}

func TestEndSessions_KeepsOne(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	kept, ended := h.mustSignIn("anna@example.ch"), h.mustSignIn("anna@example.ch")
	ctx := context.Background()
	var keptID string
	for _, row := range h.getSessions(anna, kept.text("access_token")).json["data"].([]any) {
		if row := row.(map[string]any); row["current"] == true {
			keptID = row["id"].(string)
		}
	}
	h.inTx(func(tx *store.Tx) error { return h.auth.EndSessions(ctx, tx, anna, keptID) })
	h.expect("kept", h.getSessions(anna, kept.text("access_token")), 200, "")
	h.expect("ended", h.getSessions(anna, ended.text("access_token")), 401, "common.unauthorized")
	h.expect("its refresh token", h.refresh(ended.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
}

// A rollback leaves the sessions active.
func TestEndSessions_NotWhenRolledBack(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	err := h.db.InTx(context.Background(), func(tx *store.Tx) error {
		if err := h.auth.EndSessions(context.Background(), tx, anna, ""); err != nil {
			return err
		}
		return fmt.Errorf("roll back")
	})
	if err == nil {
		t.Fatal("no error")
	}
	h.expect("after", h.getSessions(anna, token), 200, "")
}

func TestOpenSession_WithoutRefreshToken(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	var token string
	var seconds int
	h.inTx(func(tx *store.Tx) (err error) {
		token, seconds, err = h.auth.OpenSession(context.Background(), tx, anna)
		return err
	})
	h.expect("its token", h.getSessions(anna, token), 200, "")
	if seconds != 3600 {
		t.Errorf("expires in %d", seconds)
	}
	h.clock.Advance(time.Hour + time.Minute) // the list rounds times to minutes
	other := h.mustSignIn("anna@example.ch").text("access_token")
	if list := h.getSessions(anna, other); list.json["total"] != 1.0 {
		t.Errorf("the session outlived its token: %s", list.body)
	}
}

func TestAudit_RecordsSessions(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	first := h.mustSignIn("anna@example.ch")
	h.logout(h.refresh(first.text("refresh_token")).text("access_token"))
	rows, err := h.db.Query(context.Background(), `SELECT actor || ' ' || action FROM audit_entries WHERE rec_type = 'sessions' ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var entry string
		if err := rows.Scan(&entry); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(entry, anna+" "))
	}
	if want := "auth.session_opened auth.session_refreshed auth.session_ended"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Many clients sign in, read, refresh and end their sessions concurrently. No request succeeds after its session ended.
func TestSessions_InParallel(t *testing.T) {
	h := newHarness(t)
	var wait sync.WaitGroup
	for i := range 16 {
		email := fmt.Sprintf("user%d@example.ch", i)
		id := h.user(email)
		wait.Go(func() {
			for range 4 {
				if err := h.runSession(email, id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// runSession signs in, uses, refreshes and ends a session.
func (h *harness) runSession(email, id string) error {
	in, err := h.try("POST", "/authenticate", map[string]string{"user_id": email, "password": password})
	if err != nil || in.status != 200 {
		return fmt.Errorf("sign in: %d %w", in.status, err)
	}
	token := []string{"Authorization", "Bearer " + in.text("access_token")}
	for _, step := range []struct {
		method, path string
		body         any
		want         int
	}{
		{"GET", "/v1/users/" + id + "/sessions", nil, 200},
		{"POST", "/v1/token/refresh", map[string]string{"refresh_token": in.text("refresh_token")}, 200},
		{"GET", "/v1/users/" + id + "/sessions", nil, 200},
		{"POST", "/v1/logout", nil, 200},
		{"GET", "/v1/users/" + id + "/sessions", nil, 401},
	} {
		a, err := h.try(step.method, step.path, step.body, token...)
		if err != nil || a.status != step.want {
			return fmt.Errorf("%s %s: %d %s %w", step.method, step.path, a.status, a.body, err)
		}
	}
	return nil
}
