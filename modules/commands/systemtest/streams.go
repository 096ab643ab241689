package systemtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/store/testenv"
)

// StreamReader reads the notifications of a user from successive streams.
type StreamReader struct {
	mu  sync.Mutex
	ids []string // ids of the message frames, in order
	log []string // types of the other frames
}

// Seen returns the ids of the message frames.
func (r *StreamReader) Seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

// Received reports whether a frame of another type was received.
func (r *StreamReader) Received(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.log, event)
}

// Follow opens a stream that resumes after the last message, and returns a channel that is closed at its end.
func (r *StreamReader) Follow(tb testing.TB, c *Client) <-chan struct{} {
	tb.Helper()
	ended := r.tryFollow(tb, c)
	if ended == nil {
		tb.Fatal("the user has too many streams")
	}
	return ended
}

// tryFollow is follow that returns nil when the user has too many streams.
func (r *StreamReader) tryFollow(tb testing.TB, c *Client) <-chan struct{} {
	tb.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.URL+"/v1/notifications/sse", nil)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(c.Headers); i += 2 {
		request.Header.Set(c.Headers[i], c.Headers[i+1])
	}
	if ids := r.Seen(); len(ids) > 0 {
		request.Header.Set("Last-Event-ID", ids[len(ids)-1])
	}
	response, err := new(http.Transport).RoundTrip(request)
	if err != nil {
		tb.Fatal(err)
	}
	if response.StatusCode == http.StatusTooManyRequests {
		response.Body.Close()
		return nil
	}
	if response.StatusCode != http.StatusOK {
		tb.Fatalf("stream: got %s", response.Status)
	}
	ended := make(chan struct{})
	opened := make(chan struct{})
	go func() {
		defer close(ended)
		defer response.Body.Close()
		r.read(response.Body, opened)
	}()
	<-opened
	return ended
}

// FollowSoon is follow for a user whose streams on a killed node still count for a few seconds.
func (r *StreamReader) FollowSoon(tb testing.TB, c *Client) (ended <-chan struct{}) {
	tb.Helper()
	testenv.Wait(tb, "the streams of the killed node to be forgotten", func() bool { ended = r.tryFollow(tb, c); return ended != nil })
	return ended
}

// read reads frames, and ignores an incomplete one at the end.
func (r *StreamReader) read(body io.Reader, opened chan struct{}) {
	lines := bufio.NewScanner(body)
	var id, event string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event":
			event = value
		case lines.Text() == "":
			r.mu.Lock()
			if event == "message" {
				r.ids = append(r.ids, id)
			} else if event != "" {
				r.log = append(r.log, event)
			}
			r.mu.Unlock()
			if event == "open" {
				close(opened)
			}
			id, event = "", ""
		}
	}
}

// AllNotifications returns the ids of a user's notifications that a filter of the list selects, the oldest first.
func AllNotifications(tb testing.TB, c *Client, user, filter string) []string {
	tb.Helper()
	var ids []string
	for {
		var part Page
		c.Do(tb, "GET", fmt.Sprintf("/v1/notifications?search.user_id=%s&%s&sort=created_at&limit=1000&offset=%d", user, filter, len(ids)), "", 200).Decode(tb, &part)
		for _, row := range part.Data {
			var n struct{ ID string }
			if err := json.Unmarshal(row, &n); err != nil {
				tb.Fatal(err)
			}
			ids = append(ids, n.ID)
		}
		if len(part.Data) == 0 {
			return ids
		}
	}
}
