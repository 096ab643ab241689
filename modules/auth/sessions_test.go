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

func (w *world) logout(token string) answer {
	w.Helper()
	return w.call("POST", "/v1/logout", nil, "Authorization", "Bearer "+token)
}

func TestLogout_TakesEffectAtOnceAndSurvivesARestart(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	here, there := w.tokens("anna@example.ch"), w.tokens("anna@example.ch")
	w.expect("before", w.sessions(anna, here.text("access_token")), 200, "")
	w.expect("logout", w.logout(here.text("access_token")), 200, "")
	for range 2 {
		w.expect("after", w.sessions(anna, here.text("access_token")), 401, "common.unauthorized")
		w.expect("logout again", w.logout(here.text("access_token")), 401, "common.unauthorized")
		w.expect("refresh", w.refresh(here.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
		w.expect("another session", w.sessions(anna, there.text("access_token")), 200, "")
		w.restart()
	}
}

func TestUnauthorized_NamesTheScheme(t *testing.T) {
	w := newWorld(t)
	a := w.call("POST", "/v1/logout", nil)
	w.expect("no token", a, 401, "common.unauthorized")
	if a.header.Get("WWW-Authenticate") != `Bearer realm="kontor"` {
		t.Errorf("WWW-Authenticate %q", a.header.Get("WWW-Authenticate"))
	}
}

func TestSessions_ListAndEnd(t *testing.T) {
	w := newWorld(t)
	anna, bruno := w.user("anna@example.ch"), w.user("bruno@example.ch")
	w.user("chief@example.ch", access.Administrator)
	laptop, phone := w.tokens("anna@example.ch", "X-Device-ID", "laptop"), w.tokens("anna@example.ch", "X-Device-ID", "phone")
	stranger, admin := w.tokens("bruno@example.ch").text("access_token"), w.tokens("chief@example.ch").text("access_token")

	list := w.sessions(anna, laptop.text("access_token"))
	w.expect("own sessions", list, 200, "")
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
		return w.call("DELETE", "/v1/users/"+user+"/sessions/"+id, nil, "Authorization", "Bearer "+token)
	}
	w.expect("list of a stranger", w.sessions(anna, stranger), 403, "common.rbac_no_rec_access")
	w.expect("list of an administrator", w.sessions(anna, admin), 200, "")
	w.expect("list of nobody", w.sessions(store.NewID(), admin), 404, "users.user_not_found")
	w.expect("ended by a stranger", end(anna, phoneID, stranger), 403, "common.rbac_no_rec_access")
	w.expect("of another user", end(bruno, phoneID, admin), 404, "auth_m.session_not_found")
	w.expect("of nobody", end(store.NewID(), phoneID, admin), 404, "users.user_not_found")
	w.expect("unknown", end(anna, store.NewID(), laptop.text("access_token")), 404, "auth_m.session_not_found")
	w.expect("no id", end(anna, "phone", laptop.text("access_token")), 400, "common.invalid_input")
	w.expect("still there", w.sessions(anna, phone.text("access_token")), 200, "")
	w.expect("ended", end(anna, phoneID, laptop.text("access_token")), 200, "")
	w.expect("gone", w.sessions(anna, phone.text("access_token")), 401, "common.unauthorized")
	w.expect("ended before", end(anna, phoneID, admin), 404, "auth_m.session_not_found")
	if list := w.sessions(anna, laptop.text("access_token")); list.json["total"] != 1.0 {
		t.Errorf("got %s", list.body)
	}
}

// Changes of a user by another module apply to the next request of each of their sessions.
func TestChanged_TakesEffectOnTheNextRequest(t *testing.T) {
	w := newWorld(t)
	anna, bruno := w.user("anna@example.ch"), w.user("bruno@example.ch")
	token := w.tokens("anna@example.ch").text("access_token")
	ctx := context.Background()
	w.expect("before", w.sessions(bruno, token), 403, "common.rbac_no_rec_access")
	w.inTx(func(tx *store.Tx) error {
		w.auth.Changed(tx, anna)
		return w.giveRole(tx, anna, access.Administrator)
	})
	w.expect("as an administrator", w.sessions(bruno, token), 200, "")
	w.inTx(func(tx *store.Tx) error {
		w.auth.Changed(tx, anna)
		_, err := tx.Exec(ctx, `UPDATE users SET status = 'disabled' WHERE id = $1`, anna)
		return err
	})
	w.expect("disabled", w.sessions(anna, token), 401, "common.unauthorized")
}

func TestEndSessions_KeepsOne(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	kept, ended := w.tokens("anna@example.ch"), w.tokens("anna@example.ch")
	ctx := context.Background()
	var keptID string
	for _, row := range w.sessions(anna, kept.text("access_token")).json["data"].([]any) {
		if row := row.(map[string]any); row["current"] == true {
			keptID = row["id"].(string)
		}
	}
	w.inTx(func(tx *store.Tx) error { return w.auth.EndSessions(ctx, tx, anna, keptID) })
	w.expect("kept", w.sessions(anna, kept.text("access_token")), 200, "")
	w.expect("ended", w.sessions(anna, ended.text("access_token")), 401, "common.unauthorized")
	w.expect("its refresh token", w.refresh(ended.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
}

// A rolled-back change ends nothing.
func TestEndSessions_NotWhenRolledBack(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	token := w.tokens("anna@example.ch").text("access_token")
	err := w.db.InTx(context.Background(), func(tx *store.Tx) error {
		if err := w.auth.EndSessions(context.Background(), tx, anna, ""); err != nil {
			return err
		}
		return fmt.Errorf("changed my mind")
	})
	if err == nil {
		t.Fatal("no error")
	}
	w.expect("after", w.sessions(anna, token), 200, "")
}

func TestOpenSession_WithoutRefreshToken(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	var token string
	var seconds int
	w.inTx(func(tx *store.Tx) (err error) {
		token, seconds, err = w.auth.OpenSession(context.Background(), tx, anna)
		return err
	})
	w.expect("its token", w.sessions(anna, token), 200, "")
	if seconds != 3600 {
		t.Errorf("expires in %d", seconds)
	}
	w.clock.Advance(time.Hour + time.Minute) // the list counts in whole minutes
	other := w.tokens("anna@example.ch").text("access_token")
	if list := w.sessions(anna, other); list.json["total"] != 1.0 {
		t.Errorf("the session outlived its token: %s", list.body)
	}
}

func TestAudit_RecordsSessions(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	first := w.tokens("anna@example.ch")
	w.logout(w.refresh(first.text("refresh_token")).text("access_token"))
	rows, err := w.db.Query(context.Background(), `SELECT actor || ' ' || action FROM audit_entries WHERE rec_type = 'sessions' ORDER BY seq`)
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
	w := newWorld(t)
	var wait sync.WaitGroup
	for i := range 16 {
		email := fmt.Sprintf("user%d@example.ch", i)
		id := w.user(email)
		wait.Go(func() {
			for range 4 {
				if err := w.live(email, id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// live is a short life of a session.
func (w *world) live(email, id string) error {
	in, err := w.try("POST", "/authenticate", map[string]string{"user_id": email, "password": password})
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
		a, err := w.try(step.method, step.path, step.body, token...)
		if err != nil || a.status != step.want {
			return fmt.Errorf("%s %s: %d %s %w", step.method, step.path, a.status, a.body, err)
		}
	}
	return nil
}
