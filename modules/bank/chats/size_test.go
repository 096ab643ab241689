package chats

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/store"
)

// The size that ends a page is never smaller than the JSON of a chat, and never much larger.
func TestSize_BoundsTheJSONOfAChat(t *testing.T) {
	for name, content := range map[string]string{"short": "a", "quotes": strings.Repeat(`"`, 10_000), "lines": strings.Repeat("\n\t", 500), "letters": strings.Repeat("ü€", 400)} {
		for userIDs := range 4 {
			c := Chat{ID: store.NewID(), Type: Support, Metadata: []byte(`{"a":1}`), UnreadCount: 1 << 40, CreatedAt: 1 << 40, UpdatedAt: 1 << 40,
				LastMessage: &Message{ID: store.NewID(), ChatID: store.NewID(), SenderID: store.NewID(), Type: System, Content: content, Metadata: []byte(`{}`), CreatedAt: 1 << 40}}
			for range userIDs {
				c.Participants = append(c.Participants, store.NewID())
				c.LastMessage.ReadBy = append(c.LastMessage.ReadBy, store.NewID())
			}
			encoded, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.size(); got < len(encoded) || got > len(encoded)+300 {
				t.Errorf("%s, %d participants: got %d, want %d or a little more", name, userIDs, got, len(encoded))
			}
		}
	}
}
