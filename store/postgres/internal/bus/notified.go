package bus

import (
	"runtime/debug"
	"strings"
)

// maxPublishers bounds the acknowledgements that wait to be sent.
const maxPublishers = 1000

// notified handles a notification, which any user of the database can have sent. Its error ends the session.
func (s *session) notified(channel, payload string) error {
	s.mu.Lock()
	ours := channel == s.channel
	s.mu.Unlock()
	if !ours {
		return nil
	}
	if err := s.reset(); err != nil {
		return err
	}
	m, known := decode(payload)
	switch {
	case known:
		return s.received(m)
	case strings.HasPrefix(payload, otherFormat):
		return s.deliver(s.bus.config.Topics.Reset)
	}
	return nil // of another program
}

// received handles a message of a node.
func (s *session) received(m message) error {
	b := s.bus
	if m.Node == b.node {
		if g := b.takeKept(m); g != nil {
			if m.Last {
				b.runLocals(g)
			}
			return nil
		}
	}
	for _, p := range m.Pairs {
		if err := s.deliver(func() { b.config.Topics.Receive(p[0], p[1]) }); err != nil {
			return err
		}
	}
	if m.Last && m.Strict && m.Node != b.node && isID(m.Node) && isID(m.Tag) {
		s.mu.Lock()
		if len(s.acks) < maxPublishers {
			s.acks[m.Node] = m.Tag
		}
		s.mu.Unlock()
		s.wakeSender()
	}
	return nil
}

// takeKept returns the group that this process has prepared, or nil. The last message of the group removes it.
func (b *Bus) takeKept(m message) *Group {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.kept[m.Tag]
	if m.Last {
		delete(b.kept, m.Tag)
	}
	return g
}

// runLocals calls the functions of a group whose notification has arrived.
func (b *Bus) runLocals(g *Group) {
	for _, local := range g.locals {
		func() {
			defer func() {
				if v := recover(); v != nil {
					b.log.Error("panic after a commit", "panic", v, "stack", string(debug.Stack()))
				}
			}()
			local()
		}()
	}
}

// isID reports whether a text of a notification can be an id: letters and digits.
func isID(text string) bool {
	if len(text) == 0 || len(text) > 64 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
