package notifications_test

import (
	"testing"

	"kontor/server/access"
	"kontor/server/openapi/openapitest"
	"kontor/server/servertest"
	"kontor/store"
)

// Frames about records and chats, live, replayed and after an unknown id, are as the API document describes them.
func TestStream_FramesMatchTheAPIDocument(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	matches := func(f frame) {
		openapitest.ValidateFrame(t, s, "GET", "/v1/notifications/sse", f.Event, f.Data)
	}
	notified(t, s, systemEvent(beat.UserID))
	l := open(t, s.Address, "GET", beat.Token)
	matches(l.expect("open"))
	matches(l.expect("message")) // replayed
	notified(t, s, customerEvent(beat.UserID))
	matches(l.expect("message"))
	postMessage(t, anna, newChat(t, anna, beat), "Grüezi")
	matches(l.expect("message"))
	again := open(t, s.Address, "GET", beat.Token, "Last-Event-ID", store.NewID())
	matches(again.expect("open"))
	matches(again.expect("reset"))
}
