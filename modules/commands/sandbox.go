package commands

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kontor/locales"
	"kontor/modules/app"
	"kontor/modules/developer/playground"
	"kontor/server/apierr"
	"kontor/server/settings"
)

// sandboxServer serves a sandbox in rounds. A reset ends a round: the database is closed, its files are replaced by the kept ones, and
// the next round builds the modules again on the listener of the first. So nothing in memory is of the former data.
type sandboxServer struct {
	kept keptState
	main *net.TCPListener

	mu    sync.Mutex
	end   context.CancelFunc // ends the round
	asked *resetRequest      // nil: none
}

// resetRequest asks for the kept state, or for that after the first start.
type resetRequest struct {
	first bool
	done  chan error
}

// closeForReset is how long the modules may take to write what they hold in memory before the files are copied.
const closeForReset = 30 * time.Second

// serveSandbox serves the modules. first makes an empty database the beginning of the sandbox; each runs once, before it is served.
func serveSandbox(ctx context.Context, p Process, r *settings.Result, o openOptions, open *listeners, first, each func(*app.Modules) error) error {
	main, ok := open.main.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("a sandbox cannot listen on %s", open.main.Addr())
	}
	s := &sandboxServer{kept: keptState{r.Settings.Data.Dir}, main: main}
	defer main.Close() //nolint:errcheck // it may be closed already
	o.closing = func() time.Duration {
		if ctx.Err() == nil {
			return closeForReset
		}
		return closeTimeout(r.Settings.Server.Shutdown)
	}
	if err := s.kept.finish(); err != nil {
		return err
	}
	if !s.kept.exists() {
		if err := withModules(ctx, r, o, first); err != nil {
			return err
		}
		if err := s.kept.keepFirst(); err != nil {
			return err
		}
	}
	for {
		err := s.round(ctx, p, r, o, open, each)
		request := s.asked
		if request == nil || ctx.Err() != nil {
			return err
		}
		each, s.asked = func(*app.Modules) error { return nil }, nil
		if err == nil {
			err = s.kept.restore(request.first)
		}
		if err == nil {
			err = open.again(ctx)
		}
		if err != nil {
			request.done <- err
			return fmt.Errorf("reset the sandbox: %w", err)
		}
		open.ready = func() {
			open.ready = func() {}
			close(request.done)
		}
	}
}

// round serves until the context ends or a reset is asked for.
func (s *sandboxServer) round(ctx context.Context, p Process, r *settings.Result, o openOptions, open *listeners, each func(*app.Modules) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.end = cancel
	s.mu.Unlock()
	shared := &sharedListener{TCPListener: s.main}
	if err := s.main.SetDeadline(time.Time{}); err != nil {
		return err
	}
	defer shared.Close() //nolint:errcheck // it may be closed already
	open.main = shared
	o.sandbox.Restart, o.sandbox.Keep = s.restart, s.kept.keep
	o.sandbox.Rounds++
	return withModules(ctx, r, o, func(m *app.Modules) error {
		if err := each(m); err != nil {
			return err
		}
		return run(ctx, p, m, r, o, open)
	})
}

// restart ends the round, see [playground.Restart].
func (s *sandboxServer) restart(first bool) <-chan error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = &resetRequest{first: first, done: make(chan error, 1)}
		s.end()
	}
	return s.asked.done
}

// sharedListener is a listener that may be closed while connections wait for the next one on the same address.
type sharedListener struct {
	*net.TCPListener
	mu     sync.RWMutex // held for reading by Accept
	closed bool
}

// Accept returns the next connection, or net.ErrClosed.
func (l *sharedListener) Accept() (net.Conn, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	c, err := l.TCPListener.Accept()
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed
	}
	return c, err
}

// Close makes Accept return, and waits until it has. The address stays open.
func (l *sharedListener) Close() error {
	err := l.SetDeadline(time.Unix(1, 0))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return err
}

// clock returns the commands about the clock of a sandbox.
func (l *commandLine) clock() *cobra.Command {
	return group("clock", "Show and move the clock of a running sandbox.", l.showClock(), l.advanceClock(), l.clockTo())
}

type clockCommand struct {
	Command, Advance, To string
}

func (l *commandLine) showClock() *cobra.Command {
	c := &clockCommand{Command: askClock}
	return &cobra.Command{Use: "show", Short: "Print the time of the sandbox.", Example: "kontor clock show", Args: arguments(), RunE: l.run(c)}
}

func (l *commandLine) advanceClock() *cobra.Command {
	c := &clockCommand{Command: askAdvance}
	return &cobra.Command{
		Use: "advance <duration>", Short: "Move the clock ahead, and run the jobs that were due meanwhile.",
		Long: `A duration is 400d, 2w, 1y6mo or 12h30m, or one of ISO 8601 such as P400D. The
command asks the sandbox by the socket in its data directory and needs no token.
Sessions of people end with their time: sign in again.`,
		Example: "kontor clock advance 400d", Args: arguments(&c.Advance), RunE: l.run(c),
	}
}

func (l *commandLine) clockTo() *cobra.Command {
	c := &clockCommand{Command: askAdvance}
	return &cobra.Command{
		Use: "to <time>", Short: "Move the clock ahead to a day or a time, and run the jobs that were due meanwhile.",
		Example: "kontor clock to 2028-01-01\nkontor clock to 2028-01-01T12:00:00Z", Args: arguments(&c.To), RunE: l.run(c),
	}
}

// Run asks the sandbox.
func (c clockCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	request := keyRequest{Command: c.Command, To: c.To}
	if _, err := time.Parse(time.DateOnly, c.To); err == nil {
		request.To += "T00:00:00Z"
	}
	if c.Advance != "" {
		var err error
		if request.Advance, err = isoDuration(c.Advance); err != nil {
			return err
		}
	}
	return askSandbox(ctx, p, r, request)
}

// askSandbox sends a request to the sandbox of the data directory, and prints what it answers.
func askSandbox(ctx context.Context, p Process, r *settings.Result, request keyRequest) error {
	if err := notShared(r, "there is no sandbox"); err != nil {
		return err
	}
	err := askServer(ctx, r.Settings.Data.Dir, request, func(a controlAnswer) { fmt.Fprintln(p.Stdout, a.Text) })
	if errors.Is(err, errNoServer) {
		err = noSandbox(r)
	}
	return err
}

func noSandbox(r *settings.Result) error {
	return fmt.Errorf("no sandbox is running in %s; start it with: kontor serve --sandbox --data.dir %[1]s", r.Settings.Data.Dir)
}

// shortDuration is a duration as people type it; mo are months, m are minutes.
var shortDuration = regexp.MustCompile(`^(?:(\d+)y)?(?:(\d+)mo)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$`)

// isoDuration returns a duration in the form of ISO 8601.
func isoDuration(text string) (string, error) {
	if strings.HasPrefix(text, "P") {
		return text, nil
	}
	parts := shortDuration.FindStringSubmatch(text)
	if parts == nil {
		return "", fmt.Errorf("%q is not a duration such as 400d, 2w, 1y6mo, 12h30m or P400D", text)
	}
	const units = "YMWDHMS"
	iso, isTimed := "P", false
	for i, number := range parts[1:] {
		if number == "" {
			continue
		}
		if i >= strings.Index(units, "H") && !isTimed {
			iso, isTimed = iso+"T", true
		}
		iso += number + units[i:i+1]
	}
	return iso, nil
}

// moveClock moves the clock of the sandbox, and says what happened.
func (k keyRequest) moveClock(ctx context.Context, m *app.Modules, say func(string, ...any)) error {
	in := playground.Move{}
	if k.Advance != "" {
		in.Advance = &k.Advance
	} else {
		in.To = &k.To
	}
	var wrong apierr.Fields
	in.Validate(&wrong)
	err := wrong.Err()
	var moved playground.Moved
	if err == nil {
		moved, err = m.Playground.Advance(ctx, in)
	}
	if err != nil {
		return inWords(m, err)
	}
	var runs, failed int64
	for _, job := range moved.Jobs {
		runs, failed = runs+job.Runs, failed+job.Failed
	}
	say("the sandbox went from %s to %s; %d runs of %d jobs, %d of which failed", moved.From, moved.Now, runs, len(moved.Jobs), failed)
	for _, c := range moved.Changes {
		say("  %6d  %s", c.Count, c.Name)
	}
	for _, c := range moved.Notices {
		say("  %6d  notices of %s", c.Count, c.Name)
	}
	if !moved.Complete {
		say("it is not there yet, because the work took long; move it further")
	}
	return nil
}

// inWords returns an error of the API with its sentences instead of its code.
func inWords(m *app.Modules, err error) error {
	failure, ok := errors.AsType[*apierr.Error](err)
	if !ok {
		if kind, isKind := errors.AsType[apierr.Kind](err); isKind {
			return errors.New(m.Texts.Text(locales.Default, "error."+kind.Code, nil))
		}
		return err
	}
	for _, text := range failure.Fields.All {
		return errors.New(m.Texts.Text(locales.Default, text.Key, text.Args))
	}
	key := "error." + failure.Kind.Code
	if failure.Reason != "" {
		key += "." + failure.Reason
	}
	return errors.New(m.Texts.Text(locales.Default, key, failure.Args))
}

type resetCommand struct{ Keep, First bool }

func (l *commandLine) reset() *cobra.Command {
	c := &resetCommand{}
	cmd := &cobra.Command{
		Use: "reset", Short: "Take a running sandbox back to the state after its last seed file, or after its first start.",
		Long: `Records, sessions and the clock become those of that state, and streams
reconnect. The command asks the sandbox by the socket in its data directory.`,
		Example: "kontor reset\nkontor reset --first\nkontor reset --keep", Args: arguments(), RunE: l.run(c),
	}
	cmd.Flags().BoolVar(&c.First, "first", false, "Go back to the state after the first start, also if seed files were played since.")
	cmd.Flags().BoolVar(&c.Keep, "keep", false, "Keep the present state instead, so that resets go back to it.")
	cmd.MarkFlagsMutuallyExclusive("first", "keep")
	return cmd
}

const (
	resetPause = 20 * time.Millisecond // between two questions whether a reset is done
	resetTime  = 30 * time.Second      // for a reset
)

// Run resets the sandbox, and waits until it answers again.
func (c resetCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if c.Keep {
		return askSandbox(ctx, p, r, keyRequest{Command: askKeep})
	}
	began := time.Now()
	before, err := rounds(ctx, r)
	if err != nil {
		return err
	}
	request, text := keyRequest{Command: askReset}, "the sandbox went back to its kept state"
	if c.First {
		request.Command, text = askFirst, "the sandbox went back to the state after its first start"
	}
	if err := askSandbox(ctx, p, r, request); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resetTime)
	defer cancel()
	for {
		now, err := rounds(ctx, r)
		if err == nil && now != before {
			_, err = fmt.Fprintf(p.Stdout, "%s; that took %d ms\n", text, time.Since(began).Milliseconds())
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the sandbox does not answer; see its log"), err)
		case <-time.After(resetPause):
		}
	}
}

// rounds returns the number of the sandbox's rounds, as text.
func rounds(ctx context.Context, r *settings.Result) (text string, err error) {
	if err := notShared(r, "there is no sandbox"); err != nil {
		return "", err
	}
	err = askServer(ctx, r.Settings.Data.Dir, keyRequest{Command: askRounds}, func(a controlAnswer) { text = a.Text })
	if errors.Is(err, errNoServer) {
		err = noSandbox(r)
	}
	return text, err
}
