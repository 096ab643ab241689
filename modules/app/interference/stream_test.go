package interference_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"

	"kontor/store/testenv"
)

// stream reads the event stream of a person.
type stream struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	events []string
}

// follow opens the stream of a person.
func (b *bank) follow(name string) *stream {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.server.Address+"/v1/notifications/sse", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.people[name].Token)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("open the stream of %s: %v", name, err)
	}
	s := &stream{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
				s.mu.Lock()
				s.events = append(s.events, strings.TrimSpace(data))
				s.mu.Unlock()
			}
		}
	}()
	return s
}

func (s *stream) close() {
	s.cancel()
	<-s.ended
}

func (s *stream) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.events...)
}

const lastWords = "These are the last words."

// streamed returns the events that the victim has received, up to a last one that the bank sends.
func (b *bank) streamed() (all []answer) {
	b.do(request("reviewer", "POST", "/v1/customers/<victim.customer>/notify", `{"text":"`+lastWords+`","user_ids":["<victim.user>"]}`))
	testenv.Wait(b, "the last event of the victim", func() bool {
		seen := b.stream.seen()
		return len(seen) > 0 && strings.Contains(seen[len(seen)-1], lastWords)
	})
	for _, event := range b.stream.seen() {
		all = append(all, answer{http.StatusOK, event})
	}
	return all
}
