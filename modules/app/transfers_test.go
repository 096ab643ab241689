package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// ask sends a request of a client on a connection of its own, and reads no more than the head of the answer.
func ask(t *testing.T, s *servertest.Server, c *servertest.Client, path string, headers ...string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(256 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n%s\r\n", path, c.Token, strings.Join(append(headers, ""), "\r\n"))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// bigExport gives a user an export that no buffer of a connection holds.
func bigExport(t *testing.T, s *servertest.Server, user *servertest.Client) (path string) {
	t.Helper()
	servertest.Exec(t, s.DB, `
		INSERT INTO notifications (id, notice_id, user_id, customer_id, event, title_key, content_key, content, content_low, rec_type, rec_id,
			metadata, system, created_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
		SELECT '0193a7c4-0000-7000-' || substr($1, 20, 4) || '-' || substr($1, 25, 9) || substr(CAST(1000 + i AS TEXT), 2), (SELECT id FROM notices LIMIT 1), $1,
			'`+store.NilID+`', 'x', '', '', $2, '', '', '`+store.NilID+`', '{}', FALSE, 1 FROM n`, user.UserID, strings.Repeat("x", 80_000))
	return "/v1/users/" + user.UserID + "/export"
}

// One caller writes one export or table at a time, and customers never take the places of staff. An export ends when its user is
// disabled.
func TestTransfers_AreBoundedAndEndWithTheSession(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor, owner := s.Admin(), s.User(access.Advisor), s.User(access.Customer)
	s.Keyed().Do("POST", "/v1/notifications/trigger", map[string]any{"event": "x", "title_key": "t", "user_ids": []string{owner.UserID}}).Expect(t, 200)
	export := bigExport(t, s, owner)
	running := ask(t, s, owner, export)
	if running.StatusCode != http.StatusOK {
		t.Fatalf("the export answers %s", running.Status)
	}
	for _, second := range []*servertest.Client{owner, owner.With("Accept", "text/csv")} {
		path := export
		if second != owner {
			path = "/v1/tasks"
		}
		second.Do("GET", path, nil).ExpectError(t, 429, "rate_limits_m.too_many_at_once")
	}
	owner.Do("HEAD", export, nil).Expect(t, 200)
	owner.With("Accept", "text/csv").Do("HEAD", "/v1/tasks", nil).Expect(t, 200)

	// Further customers that do not read take their half.
	refused := false
	for range 64 {
		other := s.User(access.Customer)
		if ask(t, s, other, bigExport(t, s, other)).StatusCode == http.StatusTooManyRequests {
			refused = true
			break
		}
	}
	if !refused {
		t.Error("customers take every place")
	}
	advisor.With("Accept", "text/csv").Do("GET", "/v1/customers", nil).Expect(t, 200)
	admin.Do("GET", "/v1/users/"+owner.UserID+"/export", nil).Expect(t, 200)

	admin.Do("PATCH", "/v1/users/"+owner.UserID, map[string]any{"status": "disabled"}).Expect(t, 200)
	if body, err := io.ReadAll(running.Body); err == nil && json.Valid(body) {
		t.Error("the export of a disabled user was completed")
	}
}

// Whatever a user reads ends between two batches or chunks when the user is disabled. Others read it completely.
func TestTransfers_EndWhenTheirUserIsDisabled(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	upload := func(c *servertest.Client) (path string) {
		chat := c.Create("/v1/chats", map[string]any{"participants": []string{admin.UserID}})
		message := c.Create("/v1/chats/"+chat+"/messages", map[string]any{"content": "Here it is."})
		file := c.With("Content-Type", "application/octet-stream", "Content-Disposition", `attachment; filename="big.pdf"`).
			Do("POST", "/v1/chats/"+chat+"/messages/"+message+"/files", filledPDF(9<<20)).Expect(t, 201).JSON(t)
		return "/v1/files/" + file["id"].(string) + "/content"
	}
	notify := func(c *servertest.Client) (export string) {
		s.Keyed().Do("POST", "/v1/notifications/trigger", map[string]any{"event": "x", "title_key": "t", "user_ids": []string{c.UserID}}).Expect(t, 200)
		return bigExport(t, s, c)
	}
	for name, c := range map[string]struct {
		path    func(c *servertest.Client) string
		headers []string
	}{
		"an export":        {notify, nil},
		"a table":          {func(c *servertest.Client) string { notify(c); return "/v1/notifications" }, []string{"Accept: text/csv"}},
		"a file":           {upload, nil},
		"a part of a file": {upload, []string{"Range: bytes=1000-"}},
	} {
		t.Run(name, func(t *testing.T) {
			user, path := s.User(access.Customer), ""
			path = c.path(user)
			read := func(during func()) (int, error) {
				answer := ask(t, s, user, path, c.headers...)
				if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusPartialContent {
					t.Fatalf("got %s", answer.Status)
				}
				during()
				body, err := io.ReadAll(answer.Body)
				return len(body), err
			}
			whole, err := read(func() {})
			if err != nil {
				t.Fatalf("of an active user: %v", err)
			}
			got, err := read(func() {
				admin.Do("PATCH", "/v1/users/"+user.UserID, map[string]any{"status": "disabled"}).Expect(t, 200)
			})
			if got > whole*7/8 {
				t.Errorf("the disabled user got %d of %d bytes, %v", got, whole, err)
			}
		})
	}
}
