package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// session is the time of one connection. It is registered under an id of its own, so that others notice when a node has
// connected again: it has dropped then what it remembered.
type session struct {
	bus     *Bus
	id      string
	link    *link
	backend string // process id of the server's process

	wasReset bool // used by the goroutine that receives

	wake  chan struct{} // to send what is due
	ended chan struct{} // closed when receive has returned
	err   error         // valid after ended

	mu       sync.Mutex
	channel  string // of the notifications; empty until it is known
	beatDue  bool
	polling  bool // for acknowledgements of others
	pollDue  bool
	pollSoon bool              // a timer will set pollDue
	pollWait time.Duration     // before the next poll
	acking   bool              // an acknowledgement is under way
	acks     map[string]string // tags to acknowledge by publisher
}

// connect makes a session: it listens, forgets what is remembered, and registers.
func (b *Bus) connect(ctx context.Context) (*session, error) {
	conn, err := b.config.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{
		bus: b, id: rand.Text(), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		acks: make(map[string]string),
	}
	if s.link, err = newLink(conn, s.notified); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	go func() {
		s.err = s.link.receive()
		b.lost(s)
		close(s.ended)
	}()
	if err := s.begin(ctx); err != nil {
		s.fail(err)
		<-s.ended
		return nil, err
	}
	go s.sendLoop()
	s.pollNow() // for changes that were committed without a session
	return s, nil
}

// wait waits until the session has ended and returns the reason.
func (s *session) wait(ctx context.Context) error {
	select {
	case <-s.ended:
	case <-ctx.Done(): // before Close knew of this session
		_ = s.leave() // the others notice that the node is silent
		<-s.ended
	}
	return s.err
}

// leave deregisters the node and ends the session.
func (s *session) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewellLimit)
	defer cancel()
	err := s.link.call(ctx, stmtLeave, s.id, s.bus.node)
	s.fail(errClosed)
	return err
}

// fail ends the session. The lease ends at once.
func (s *session) fail(reason error) {
	s.link.abort(reason)
	s.bus.lost(s)
}

// lost ends the lease and forgets the kept functions of a session that has ended.
func (b *Bus) lost(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != s {
		return
	}
	b.session = nil
	b.rememberUntil.Store(0)
	b.leadUntil.Store(0)
	clear(b.kept)
}

// begin prepares the connection, in four round trips. Notifications are handled from LISTEN on.
func (s *session) begin(ctx context.Context) error {
	if err := s.hello(ctx); err != nil {
		return err
	}
	var steps []step
	for name, sql := range statements {
		steps = append(steps, func(answer answer) error { return s.link.prepare(name, sql, answer) })
	}
	steps = append(steps, func(answer answer) error { return s.link.exec(stmtSetUp, answer) }, s.listen)
	if _, err := s.link.all(ctx, steps...); err != nil {
		return fmt.Errorf("listen for announcements: %w", err)
	}
	if err := s.join(ctx); err != nil {
		return fmt.Errorf("register with the other nodes: %w", err)
	}
	return nil
}

// applicationName names the connection in pg_stat_activity.
func (s *session) applicationName() string { return "kontor bus " + s.id }

var errStandby = errors.New("the database server is a standby, which accepts no writes; use the address of the primary")

// hello finds out who the server is, and creates the tables.
func (s *session) hello(ctx context.Context) error {
	sent := s.bus.time.Now()
	rows, err := s.link.all(ctx, func(answer answer) error {
		return s.link.query(fmt.Sprintf(sessionSettings, s.applicationName())+selectServer, answer)
	})
	if err == nil && len(rows) != 1 {
		err = errors.New("no answer")
	}
	if err != nil {
		return fmt.Errorf("prepare the connection for announcements: %w", err)
	}
	r := rows[0]
	s.backend = r[0]
	switch {
	case r[1] == "":
		return errors.New("the database has no schema for the tables; create the schema that search_path names first")
	case r[2] == "t":
		return errStandby
	}
	if s.backend != strconv.FormatUint(uint64(s.link.pid), 10) {
		if err := s.rejectPool(ctx); err != nil {
			return err
		}
	}
	s.setChannel("kontor_" + r[1])
	s.bus.clock.sample(sent, s.bus.time.Now(), microseconds(r[4]))
	if r[3] != "t" {
		if _, err := s.link.all(ctx, func(answer answer) error { return s.link.query(createTables, answer) }); err != nil {
			return fmt.Errorf("create the tables for announcements: %w", err)
		}
	}
	return nil
}

// setChannel notes the channel of the schema.
func (s *session) setChannel(name string) {
	s.mu.Lock()
	s.channel = name
	s.mu.Unlock()
	s.bus.mu.Lock()
	s.bus.channel = name
	s.bus.mu.Unlock()
}

// listen subscribes to the channel. Then the receivers forget what they remember.
func (s *session) listen(answer answer) error {
	return s.link.query(`LISTEN `+s.bus.Channel(), func(rows []row, err error) error {
		if err == nil {
			err = s.reset()
		}
		return errors.Join(answer(rows, err), err)
	})
}

// reset makes the receivers forget, once, on the goroutine that receives: as soon as the session listens, and before the first
// notification, which may arrive before the answer to LISTEN.
func (s *session) reset() error {
	if s.wasReset {
		return nil
	}
	s.wasReset = true
	return s.deliver(s.bus.config.Topics.Reset)
}

// deliver calls receivers. After a panic nothing that they remember can be trusted, so the session ends; the next one
// makes all of them forget.
func (s *session) deliver(receive func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.bus.log.Error("panic in a receiver of announcements", "panic", v, "stack", string(debug.Stack()))
			err = errors.New("a receiver of announcements has panicked")
		}
	}()
	receive()
	return nil
}

// join registers the session, which begins the lease, and learns about the others.
func (s *session) join(ctx context.Context) error {
	b := s.bus
	n := &b.config.Node
	if n.Started == 0 {
		n.Started = clockOf(b.clock)
	}
	b.mu.Lock()
	earlier := b.members.self
	b.mu.Unlock()
	_, err := s.link.all(ctx, func(answer answer) error {
		return s.link.exec(stmtJoin, func(rows []row, err error) error {
			if err == nil {
				b.adopt(s)
			}
			return answer(rows, err)
		}, s.id, earlier, b.node, n.Name, n.Version, strconv.FormatInt(int64(n.Started), 10), n.Settings)
	}, func(answer answer) error {
		return s.beat(func(err error) error { return errors.Join(answer(nil, err), err) })
	})
	return err
}

// adopt makes s the session of the bus.
func (b *Bus) adopt(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = s
	b.members.self = s.id
}

func microseconds(text string) time.Time {
	n, _ := strconv.ParseInt(text, 10, 64) // the server's own number
	return time.UnixMicro(n)
}

// array writes a text array of PostgreSQL. The elements must not need quotes.
func array(elements []string) string { return "{" + strings.Join(elements, ",") + "}" }

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

// Time is a monotonic clock.
type Time interface {
	// Now returns the time since a moment that stays the same. It never goes back.
	Now() time.Duration
	// AfterFunc calls f on a goroutine of its own when d has passed, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// machineTime is the monotonic clock of the machine. It runs while the process is stopped, too.
type machineTime struct{ start time.Time }

func (m machineTime) Now() time.Duration { return time.Since(m.start) }

func (machineTime) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
