package notifications_test

import (
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// revocations are the changes that end a stream, each with the role of its user. The user or an administrator makes the change.
var revocations = map[string]struct {
	role   string
	change func(t *testing.T, s *servertest.Server, admin, user *servertest.Client)
}{
	"sign-out": {role: access.Customer, change: func(t *testing.T, _ *servertest.Server, _, user *servertest.Client) {
		user.Do("POST", "/v1/logout", nil).Expect(t, 200)
	}},
	"the user is disabled": {role: access.Advisor, change: func(t *testing.T, _ *servertest.Server, admin, user *servertest.Client) {
		admin.Do("PATCH", "/v1/users/"+user.UserID, `{"status":"disabled"}`).Expect(t, 200)
	}},
	"the password is set by an administrator": {role: access.Customer, change: func(t *testing.T, _ *servertest.Server, admin, user *servertest.Client) {
		admin.Do("PUT", "/v1/users/"+user.UserID+"/password", `{"password":"eight other words that nobody chooses"}`).Expect(t, 200)
	}},
	"the session is ended": {role: access.Customer, change: func(t *testing.T, s *servertest.Server, admin, user *servertest.Client) {
		var id string
		if err := s.DB.QueryRow(t.Context(), `SELECT id FROM sessions WHERE user_id = $1 AND ended_at IS NULL`, user.UserID).Scan(&id); err != nil {
			t.Fatal(err)
		}
		admin.Do("DELETE", "/v1/users/"+user.UserID+"/sessions/"+id, nil).Expect(t, 200)
	}},
	"another session is opened beyond the limit": {role: access.Customer, change: func(t *testing.T, s *servertest.Server, _, user *servertest.Client) {
		s.SignIn(user.UserID, "a long enough password 42")
	}},
	// The role carries read_all on notifications and all other rights.
	"an administrator loses the role": {role: access.Administrator, change: func(t *testing.T, _ *servertest.Server, admin, user *servertest.Client) {
		admin.Do("PUT", "/v1/users/"+user.UserID+"/roles", map[string]any{"roles": []string{"Registrant"}}).Expect(t, 200)
	}},
}

// Four publishers write to a stream while it is revoked. Notifications that are published after the answer to the revocation
// are not delivered, and the stream ends. The stream of another user continues.
func TestStream_DeliversNothingAfterARevocationWasAnswered(t *testing.T) {
	const rounds = 12
	s := servertest.Start(t, func(o *settings.Settings) { o.Auth.SessionsMax = 1 })
	admin, witness := s.Admin(), s.User(access.Advisor)
	watching := open(t, s.Address, "GET", witness.Token)
	watching.expect("open")
	for name, r := range revocations {
		t.Run(name, func(t *testing.T) {
			for range rounds {
				user := s.User(r.role)
				l := open(t, s.Address, "GET", user.Token)
				l.expect("open")
				late := publishWhile(t, []*servertest.Server{s}, user.UserID, func() { r.change(t, s, admin, user) })
				for f, ok := l.event(); ok; f, ok = l.event() {
					if late[f.ID] {
						t.Fatalf("%s was published after the answer and delivered", f.ID)
					}
				}
			}
		})
	}
	id := notified(t, s, systemEvent(witness.UserID))[0]
	if f := watching.expect("message"); f.ID != id {
		t.Errorf("the witness got %+v", f)
	}
}

// publishWhile publishes to a user before, during and after a change, on all nodes, and returns the ids of what was
// stored after the change was answered.
func publishWhile(t *testing.T, nodes []*servertest.Server, userID string, change func()) map[string]bool {
	t.Helper()
	const publishers, before, after = 4, 5, 5
	var start, ended sync.WaitGroup
	start.Add(publishers)
	stop := make(chan struct{})
	for i := range publishers {
		s := nodes[i%len(nodes)]
		begun := sync.OnceFunc(start.Done)
		ended.Go(func() {
			defer begun() // also when a notification fails
			for n, left := 0, after; left > 0; n++ {
				select {
				case <-stop:
					left--
				default:
				}
				notify(t, s.DB, s.Notifications, systemEvent(userID))
				if n == before {
					begun()
				}
			}
		})
	}
	finish := sync.OnceFunc(func() { close(stop); ended.Wait() })
	defer finish() // also when the change fails
	start.Wait()
	change()
	known := ids(t, nodes[0], userID)
	finish()
	late := ids(t, nodes[0], userID)
	for id := range known {
		delete(late, id)
	}
	if len(late) == 0 {
		t.Fatal("no notification was published after the change")
	}
	return late
}

// ids returns the ids of a user's notifications.
func ids(t *testing.T, s *servertest.Server, userID string) map[string]bool {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), `SELECT id FROM notifications WHERE user_id = $1`, userID)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		found[id] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
