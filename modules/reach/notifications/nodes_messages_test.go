package notifications_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// A frame about a message is the same on every node, for each reader.
func TestNodes_FramesCarryMessages(t *testing.T) {
	nodes := twoNodes(t)
	anna, beat, carla := nodes[0].User(access.Advisor), nodes[0].User(access.Customer), nodes[0].User(access.Advisor)
	chatID := newChat(t, anna, beat, carla)
	for _, reader := range []*servertest.Client{beat, carla} {
		var lines [2]*streamClient
		for i, node := range nodes {
			lines[i] = open(t, node.Address, "GET", reader.Token)
			lines[i].expect("open")
		}
		for _, text := range []string{"Grüezi", string(slices.Repeat([]byte("lang "), 1000))} {
			posted := postMessage(t, anna, chatID, text)
			here, there := lines[0].expect("message"), lines[1].expect("message")
			if fmt.Sprint(here.withoutSentAt(t)) != fmt.Sprint(there.withoutSentAt(t)) {
				t.Errorf("got %s on one node and %s on the other", here.Data, there.Data)
			}
			if m := there.message(t); m.Chat == nil || m.Chat.MessageID != posted["id"] || m.People[anna.UserID] == nil {
				t.Errorf("got %s", there.Data)
			}
		}
	}
}

// Former participants get no texts of a chat.
func TestNodes_FramesOfFormerParticipantsCarryNoMessage(t *testing.T) {
	nodes := twoNodes(t, func(o *settings.Settings) { o.Notifications.SSE.Heartbeat = 2 * time.Second })
	anna, beat := nodes[0].User(access.Advisor), nodes[0].User(access.Customer)
	carla := nodes[0].User(access.Advisor)
	chatID := newChat(t, anna, beat, carla)
	l := open(t, nodes[1].Address, "GET", beat.Token)
	l.expect("open")
	// Only a live stream gets heartbeats. Before, it reads the table itself, and may see the message before Beat is removed.
	if f, _ := l.next(); f.Comment == "" {
		t.Fatalf("got %+v, want a heartbeat", f)
	}
	release := nodes[1].Notifications.HoldFrames()
	postMessage(t, anna, chatID, "secret plans")
	anna.Do("DELETE", "/v1/chats/"+chatID+"/participants/"+beat.UserID, nil).Expect(t, http.StatusOK)
	release()
	if m := l.expect("message").message(t); m.Event != "message_received" || m.Chat != nil {
		t.Errorf("got %+v with the message %+v", m, m.Chat)
	}
}
