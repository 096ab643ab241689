package commands

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kontor/locales"
	"kontor/modules/app"
	"kontor/modules/developer/playground"
	"kontor/server"
	"kontor/server/apierr"
	"kontor/server/settings"
)

// sandboxServer serves a sandbox in rounds. A reset ends a round: the database is closed, its files are replaced by the kept ones, and
// the next round builds the modules again on the listener of the first. So nothing in memory is of the former data.
type sandboxServer struct {
	kept keptState
	main net.Listener

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
	s := &sandboxServer{kept: keptState{r.Settings.Data.Dir}, main: open.main}
	defer s.main.Close() // it may be closed already
	o.closing = func() time.Duration {
		if ctx.Err() == nil {
			return closeForReset
		}
		return closeTimeout(r.Settings.Server.Shutdown)
	}
	if err := s.kept.finish(ctx); err != nil {
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
			err = s.kept.restore(ctx, request.first)
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
	lent := server.Lend(s.main)
	lent.Free()        // after the round before
	defer lent.Close() //nolint:errcheck // it may be closed already
	open.main = lent
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

// clock returns the commands about the clock of a sandbox.
func (l *commandLine) clock() *cobra.Command {
	return group("clock", "Show and move the clock of a running sandbox.", l.showClock(), l.advanceClock(), l.clockTo())
}

func (l *commandLine) showClock() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the time of the sandbox.", Example: "kontor clock show", Args: arguments(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			return p.askSandbox(ctx, r, keyRequest{Command: askClock})
		}),
	}
}

func (l *commandLine) advanceClock() *cobra.Command {
	var duration string
	return &cobra.Command{
		Use: "advance <duration>", Short: "Move the clock ahead, and run the jobs that were due meanwhile.",
		Long: `A duration is 400d, 2w, 1y6mo or 12h30m, or one of ISO 8601 such as P400D. The
command asks the sandbox by the socket in its data directory and needs no token.
Sessions of people end with their time: sign in again.`,
		Example: "kontor clock advance 400d", Args: arguments(&duration),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) (err error) {
			p.warn(r)
			request := keyRequest{Command: askAdvance}
			if request.Advance, err = isoDuration(duration); err != nil {
				return err
			}
			return p.askSandbox(ctx, r, request)
		}),
	}
}

func (l *commandLine) clockTo() *cobra.Command {
	request := keyRequest{Command: askAdvance}
	return &cobra.Command{
		Use: "to <time>", Short: "Move the clock ahead to a day or a time, and run the jobs that were due meanwhile.",
		Example: "kontor clock to 2028-01-01\nkontor clock to 2028-01-01T12:00:00Z", Args: arguments(&request.To),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			if _, err := time.Parse(time.DateOnly, request.To); err == nil {
				request.To += "T00:00:00Z"
			}
			return p.askSandbox(ctx, r, request)
		}),
	}
}

// askSandbox sends a request to the sandbox of the data directory, and prints what it answers.
func (p Process) askSandbox(ctx context.Context, r *settings.Result, request keyRequest) error {
	return askSandbox(ctx, r, request, func(a controlAnswer) { fmt.Fprintln(p.Stdout, a.Text) })
}

func askSandbox(ctx context.Context, r *settings.Result, request keyRequest, show func(controlAnswer)) error {
	if err := notShared(r, "there is no sandbox"); err != nil {
		return err
	}
	err := askServer(ctx, r.Settings.Data.Dir, request, show)
	if errors.Is(err, errNoServer) {
		return fmt.Errorf("no sandbox is running in %s; start it with: kontor serve --sandbox --data.dir %[1]s", r.Settings.Data.Dir)
	}
	return err
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
	in := playground.Move{To: &k.To}
	if k.Advance != "" {
		in = playground.Move{Advance: &k.Advance}
	}
	var moved playground.Moved
	err := validated(&in)
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

func (l *commandLine) reset() *cobra.Command {
	var first, keep bool
	cmd := &cobra.Command{
		Use: "reset", Short: "Take a running sandbox back to the state after its last seed file, or after its first start.",
		Long: `Records, sessions and the clock become those of that state, and streams
reconnect. The command asks the sandbox by the socket in its data directory.`,
		Example: "kontor reset\nkontor reset --first\nkontor reset --keep", Args: arguments(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			switch {
			case keep:
				return p.askSandbox(ctx, r, keyRequest{Command: askKeep})
			case first:
				return resetSandbox(ctx, p, r, askFirst, "the sandbox went back to the state after its first start")
			}
			return resetSandbox(ctx, p, r, askReset, "the sandbox went back to its kept state")
		}),
	}
	cmd.Flags().BoolVar(&first, "first", false, "Go back to the state after the first start, also if seed files were played since.")
	cmd.Flags().BoolVar(&keep, "keep", false, "Keep the present state instead, so that resets go back to it.")
	cmd.MarkFlagsMutuallyExclusive("first", "keep")
	return cmd
}

const (
	resetPause = 20 * time.Millisecond // between two questions whether a reset is done
	resetTime  = 30 * time.Second      // for a reset
)

// resetSandbox resets the sandbox, waits until it answers again, and prints the text.
func resetSandbox(ctx context.Context, p Process, r *settings.Result, command, text string) error {
	began := time.Now()
	before, err := rounds(ctx, r)
	if err != nil {
		return err
	}
	if err := p.askSandbox(ctx, r, keyRequest{Command: command}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resetTime)
	defer cancel()
	for {
		now, err := rounds(ctx, r)
		if err == nil && now != before {
			return p.say("%s; that took %d ms", text, time.Since(began).Milliseconds())
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
	err = askSandbox(ctx, r, keyRequest{Command: askRounds}, func(a controlAnswer) { text = a.Text })
	return text, err
}
