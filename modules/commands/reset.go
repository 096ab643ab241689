package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kontor/server/settings"
)

type resetCommand struct{ Keep bool }

func (l *commandLine) reset() *cobra.Command {
	c := &resetCommand{}
	cmd := &cobra.Command{
		Use: "reset", Short: "Take a running sandbox back to its kept state, which is that after the first start.",
		Long: `Records, sessions and the clock become those of that state, and streams
reconnect. The command asks the sandbox by the socket in its data directory.`,
		Example: "kontor reset\nkontor reset --keep", Args: arguments(), RunE: l.run(c),
	}
	cmd.Flags().BoolVar(&c.Keep, "keep", false, "Keep the present state instead, so that resets go back to it.")
	return cmd
}

const (
	resetPause = 20 * time.Millisecond // between two questions whether a reset is done
	resetTime  = 30 * time.Second      // for a reset
)

// Run resets the sandbox, and waits until it answers again.
func (c resetCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	began := time.Now()
	before, err := rounds(ctx, r)
	if err != nil {
		return err
	}
	request, text := keyRequest{Command: askReset}, "the sandbox went back to its kept state"
	if c.Keep {
		request.Command, text = askKeep, "the state of the sandbox is kept"
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
