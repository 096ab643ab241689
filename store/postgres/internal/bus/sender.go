package bus

import (
	"errors"
	"fmt"
	"time"
)

// sendLoop sends what is due, on a goroutine of its own, so that receive need not wait until the server takes a statement.
func (s *session) sendLoop() {
	for {
		select {
		case <-s.wake:
			if err := s.sendDue(); err != nil {
				s.fail(err)
				return
			}
		case <-s.ended:
			return
		}
	}
}

// wakeSender has sendLoop look for what is due.
func (s *session) wakeSender() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func (s *session) sendDue() error {
	s.mu.Lock()
	acks, poll, beat := s.takeAcks(), s.pollDue && !s.polling, s.beatDue
	if poll {
		s.pollDue, s.polling = false, true
	}
	s.beatDue = false
	s.mu.Unlock()
	var err error
	if acks != nil {
		err = s.acknowledge(acks)
	}
	if err == nil && poll {
		err = s.poll()
	}
	if err == nil && beat {
		err = s.beat(func(err error) error { return err })
	}
	return err
}

// later calls f when d has passed, unless the session has ended.
func (s *session) later(d time.Duration, f func()) {
	s.bus.time.AfterFunc(d, func() {
		select {
		case <-s.ended:
		default:
			f()
		}
	})
}

// takeAcks returns the acknowledgements to send now. Those that come while some are under way are collected.
func (s *session) takeAcks() map[string]string {
	if len(s.acks) == 0 || s.acking {
		return nil
	}
	taken := s.acks
	s.acks, s.acking = make(map[string]string), true
	return taken
}

func (s *session) acknowledge(acks map[string]string) error {
	var publishers, tags []string
	for publisher, tag := range acks {
		publishers, tags = append(publishers, publisher), append(tags, tag)
	}
	return s.link.exec(stmtAck, func(_ []row, err error) error {
		s.mu.Lock()
		s.acking = false
		more := len(s.acks) > 0
		s.mu.Unlock()
		if more {
			s.wakeSender()
		}
		return err
	}, s.id, array(publishers), array(tags))
}

const (
	// firstPoll is the time after which acknowledgements are looked for again. It doubles up to lastPoll.
	firstPoll = time.Millisecond
	lastPoll  = 16 * time.Millisecond
)

// pollNow looks for acknowledgements at once.
func (s *session) pollNow() {
	s.mu.Lock()
	s.pollDue, s.pollWait = true, firstPoll
	s.mu.Unlock()
	s.wakeSender()
}

func (s *session) poll() error {
	sent := s.bus.time.Now()
	return s.link.exec(stmtPoll, func(rows []row, err error) error {
		if err != nil {
			return err
		}
		waiting := s.bus.acknowledged(s, sent, rows)
		s.mu.Lock()
		s.polling = false
		due, later := s.pollDue, waiting && !s.pollDue && !s.pollSoon
		pause := s.pollWait
		if later {
			s.pollSoon, s.pollWait = true, min(2*s.pollWait, lastPoll)
		}
		s.mu.Unlock()
		if due {
			s.wakeSender()
		}
		if later {
			s.later(pause, s.pollAgain)
		}
		return nil
	}, s.bus.node)
}

// pollAgain looks for acknowledgements when a pause has passed.
func (s *session) pollAgain() {
	s.mu.Lock()
	s.pollDue, s.pollSoon = true, false
	s.mu.Unlock()
	s.wakeSender()
}

var (
	errRemoved = errors.New("the other nodes have removed this one, or the database server has started again")
	errSilent  = fmt.Errorf("the database server has not answered for %v", answerLimit)
)

// beat sends a heartbeat. answered is called when it was handled, on the goroutine that receives; its error ends the session.
func (s *session) beat(answered func(error) error) error {
	b := s.bus
	sent := b.time.Now()
	stop := b.time.AfterFunc(answerLimit, func() { s.fail(errSilent) })
	return s.link.exec(stmtBeat, func(rows []row, err error) error {
		received := b.time.Now()
		stop()
		if err != nil {
			return answered(err)
		}
		found, err := parseBeat(rows)
		if err == nil && found.backend != s.backend {
			err = errPool
		}
		if err != nil {
			return answered(err)
		}
		b.clock.sample(sent, received, found.time)
		todo := b.renew(s, sent, received, found)
		s.later(beatInterval-(b.time.Now()-sent), s.beatAgain)
		if todo.remove != nil {
			err = s.remove(*todo.remove)
		}
		if err == nil && todo.claim != nil {
			return s.claim(*todo.claim, answered)
		}
		return answered(err)
	}, s.id)
}

// beatAgain sends a heartbeat when the interval has passed.
func (s *session) beatAgain() {
	s.mu.Lock()
	s.beatDue = true
	s.mu.Unlock()
	s.wakeSender()
}

// claim tries to become the leader. answered is called when that is decided.
func (s *session) claim(from leader, answered func(error) error) error {
	b := s.bus
	sent := b.time.Now()
	return s.link.exec(stmtClaim, func(rows []row, err error) error {
		if err == nil && len(rows) == 1 {
			b.lead(s, sent)
		}
		return answered(err)
	}, s.id, from.id, from.beats)
}

// remove removes a node that has been silent for long.
func (s *session) remove(n observed) error {
	if err := s.link.exec(stmtSweep, func(_ []row, err error) error { return err }, n.id, n.beats); err != nil {
		return err
	}
	return s.link.exec(stmtEnd, func(_ []row, err error) error {
		if err != nil { // the nodes have different users of the database
			s.bus.log.Debug("could not end the connection of a silent node", "node", n.Name, "err", err)
		}
		return nil
	}, n.backend, "kontor bus "+n.id)
}
