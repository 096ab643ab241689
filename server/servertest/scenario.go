package servertest

import (
	"maps"
	"strings"
	"testing"
)

// Body is a JSON object to send.
type Body map[string]any

// With returns a copy with further members, in pairs of name and value.
func (b Body) With(pairs ...any) Body {
	next := maps.Clone(b)
	for i := 0; i < len(pairs); i += 2 {
		next[pairs[i].(string)] = pairs[i+1]
	}
	return next
}

// Scenario is one request, with texts that the response must and must not contain.
type Scenario struct {
	Name     string
	As       *Client // nil: anonymous
	Method   string
	Path     string
	Body     any
	Status   int
	Contains []string
	Excludes []string
}

// Run sends the requests in order, each in a subtest.
func Run(t *testing.T, s *Server, scenarios []Scenario) {
	t.Helper()
	for _, c := range scenarios {
		t.Run(c.Name, func(t *testing.T) {
			client := c.As
			if client == nil {
				client = s.Anonymous()
			}
			answer := client.Do(c.Method, c.Path, c.Body)
			if answer.Status != c.Status {
				t.Errorf("%s %s: got %d %s, want %d", c.Method, c.Path, answer.Status, answer.Body, c.Status)
			}
			for _, text := range c.Contains {
				if !strings.Contains(answer.Body, text) {
					t.Errorf("%s %s: %s lacks %s", c.Method, c.Path, answer.Body, text)
				}
			}
			for _, text := range c.Excludes {
				if strings.Contains(answer.Body, text) {
					t.Errorf("%s %s: %s has %s", c.Method, c.Path, answer.Body, text)
				}
			}
		})
	}
}
