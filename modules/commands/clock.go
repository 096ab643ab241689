package commands

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kontor/locales"
	"kontor/modules/app"
	"kontor/modules/developer/playground"
	"kontor/server/apierr"
	"kontor/server/settings"
)

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
		say("it is not there yet, because the work took long; continue with: kontor clock to")
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
