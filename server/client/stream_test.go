package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/client"
	"kontor/server/client/clienttest"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// cutting is a transport that cuts each event stream after a random number of bytes, often within a frame.
type cutting struct{ cuts *int }

func (c cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && response.Header.Get("Content-Type") == "text/event-stream" {
		*c.cuts++
		response.Body = &cutBody{response.Body, 200 + rand.IntN(3000)}
	}
	return response, err
}

type cutBody struct {
	io.ReadCloser
	left int
}

var errCut = errors.New("connection reset by peer")

func (b *cutBody) Read(buffer []byte) (int, error) {
	if b.left == 0 {
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(buffer[:min(len(buffer), b.left)])
	b.left -= n
	return n, err
}

func TestStream_ContinuesAfterCutsWithoutGapOrDuplicate(t *testing.T) {
	const count = 120
	s := servertest.Start(t)
	user := s.User(access.Customer)
	cuts := 0
	reader := must(client.New("http://"+s.Address, client.WithToken(user.Token), client.WithTransport(cutting{&cuts}), client.WithBackoff(time.Millisecond, time.Millisecond)))(t)
	trigger := clienttest.New(t, s, client.WithAPIKey(servertest.APIKey))
	send := func(title string) {
		s.Clock.Advance(time.Millisecond)
		in := client.NotificationTriggerInput{Event: "test", TitleKey: title, UserIDs: []string{user.UserID}}
		if _, err := trigger.Notifications.Trigger(context.Background(), in); err != nil {
			t.Error(err)
		}
	}
	// A stream without a position begins with what comes after its "open": what a cut before the first notification hides is lost.
	send("before")
	known := must(reader.Notifications.List(t.Context(), client.NotificationsListParams{}))(t).Data[0].ID
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	defer cancel()
	go func() {
		for i := range count {
			send(fmt.Sprint(i))
		}
	}()
	var got []string
	for frame, err := range reader.Notifications.Stream(ctx, client.After(known)) {
		if err != nil {
			t.Fatalf("%v after %d notifications", err, len(got))
		}
		if frame.Message == nil {
			continue
		}
		if frame.ID != frame.Message.ID {
			t.Errorf("the frame %s has the notification %s", frame.ID, frame.Message.ID)
		}
		if got = append(got, frame.Message.Title); len(got) == count {
			break
		}
	}
	want := make([]string, count)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	if !slices.Equal(got, want) || cuts < 5 {
		t.Errorf("after %d cuts: got %v", cuts, got)
	}
}

// The service ends a stream no later than its token. The client refreshes the token and continues.
func TestStream_OutlivesItsToken(t *testing.T) {
	s := servertest.Start(t)
	kontor, seen := signedIn(t, s, client.WithBackoff(time.Millisecond, time.Millisecond))
	opened := 0
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	defer cancel()
	for frame, err := range kontor.Notifications.Stream(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if frame.Event != "open" {
			continue
		}
		if opened++; opened == 3 {
			break
		}
		s.Clock.Advance(61 * time.Minute)
	}
	if n := seen.count("/v1/token/refresh"); n != 2 {
		t.Errorf("%d refreshes", n)
	}
}

func TestStream_EndsWhenTheCallerIsRejected(t *testing.T) {
	s := servertest.Start(t)
	kontor := clienttest.New(t, s, client.WithToken("wrong"))
	for _, err := range kontor.Notifications.Stream(t.Context()) {
		if !errors.Is(err, client.ErrCommonUnauthorized) {
			t.Errorf("got %v", err)
		}
	}
}

func TestStream_ReportsAnUnknownPosition(t *testing.T) {
	s := servertest.Start(t)
	kontor, _ := clienttest.User(t, s, access.Customer)
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	defer cancel()
	for frame, err := range kontor.Notifications.Stream(ctx, client.After("0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10")) {
		if frame.Event == "reset" && frame.Reset.Reason == "unknown_event_id" {
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// The change feed has cursors in its pages and a position in its stream.
func TestStream_FollowsChangesOfRecords(t *testing.T) {
	s := servertest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	defer cancel()
	admin := clienttest.Admin(t, s)
	start := must(admin.Events.List(ctx, client.EventsListParams{After: "latest"}))(t).Next
	var want []string
	for range 9 {
		want = append(want, newCustomer(t, admin, "Keller").ID)
	}
	var got []string
	for event, err := range admin.Events.All(ctx, client.EventsListParams{After: start, Types: "customers.*", Limit: 2, Include: "record"}) {
		if err != nil {
			t.Fatal(err)
		}
		var customer client.Customer
		if err := json.Unmarshal(event.Record, &customer); err != nil || customer.ID != event.RecID || customer.LastName != "Keller" {
			t.Errorf("the record of %+v: %v", event, err)
		}
		got = append(got, event.RecID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages: got %v, want %v", got, want)
	}
	cuts := 0
	reader := must(client.New("http://"+s.Address, client.WithTokens(admin.Tokens()), client.WithTransport(cutting{&cuts}), client.WithBackoff(time.Millisecond, time.Millisecond)))(t)
	got = nil
	for frame, err := range reader.Events.Stream(ctx, client.EventsListParams{After: start, Types: "customers.created"}) {
		if err != nil {
			t.Fatalf("%v after %v", err, got)
		}
		if frame.Change == nil {
			continue
		}
		if frame.Change.Type != "customers.created" || frame.ID != frame.Change.ID {
			t.Errorf("got %+v", frame)
		}
		if got = append(got, frame.Change.RecID); len(got) == len(want) {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("stream with %d cuts: got %v, want %v", cuts, got, want)
	}
}
