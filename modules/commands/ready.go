package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"kontor/server/settings"
)

type readyCommand struct{ Timeout int }

func (l *commandLine) ready() *cobra.Command {
	c := &readyCommand{}
	cmd := &cobra.Command{
		Use: "ready", Short: "Ask the running server whether it is ready.",
		Long: `The command asks the server of the same settings on this machine. It exits with
0 when the server is ready, and with 1 when it is not or does not answer. It
needs no sign-in. Health checks of containers use it.`,
		Example: "kontor ready\nkontor ready --server.listen 127.0.0.1:9000", Args: arguments(), RunE: l.run(c),
	}
	cmd.Flags().IntVar(&c.Timeout, "timeout", 5, "`Seconds` to wait for the answer.")
	return cmd
}

const maxReadyTimeout = 3600

// Run asks /readyz.
func (c readyCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	if c.Timeout < 1 || c.Timeout > maxReadyTimeout {
		return fmt.Errorf("--timeout must be from 1 to %d", maxReadyTimeout)
	}
	s := &r.Settings.Server
	if _, port, err := net.SplitHostPort(s.Listen); err == nil && port == "0" {
		return errors.New("server.listen has port 0, so the port of the server is not known; name it with --server.listen")
	}
	name := ""
	if len(s.Domain) > 0 {
		name = s.Domain[0]
	}
	client, origin := ownClient(s.Listen, s.OverTLS(), name, time.Duration(c.Timeout)*time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		if opened, ok := errors.AsType[*net.OpError](err); ok && opened.Op == "dial" {
			return fmt.Errorf("no server answers at %s; is it running with these settings?", origin)
		}
		return fmt.Errorf("the server at %s did not answer: %w", origin, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	return readiness(p.Stdout, origin, answer)
}

// readiness prints that the server is ready, or returns what is missing.
func readiness(out io.Writer, origin string, answer *http.Response) error {
	const maxBody = 64 << 10
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return fmt.Errorf("the server at %s did not finish its answer: %w", origin, err)
	}
	var state struct {
		Status string            `json:"overall_status"`
		Checks map[string]string `json:"checks"`
	}
	if json.Unmarshal(body, &state) != nil || state.Status == "" {
		return fmt.Errorf("the server at %s is not Kontor: /readyz returned status %d", origin, answer.StatusCode)
	}
	if answer.StatusCode == http.StatusOK {
		text := "ready"
		if warnings := checksWith(state.Checks, "warning"); len(warnings) > 0 {
			text += "; warning: " + strings.Join(warnings, ", ")
		}
		_, err := fmt.Fprintln(out, text)
		return err
	}
	failed := checksWith(state.Checks, "failed")
	if len(failed) == 0 {
		return fmt.Errorf("the server at %s is shutting down", origin)
	}
	return fmt.Errorf("the server at %s is not ready; failed: %s", origin, strings.Join(failed, ", "))
}

// checksWith returns the names of the checks with a result, sorted.
func checksWith(checks map[string]string, result string) (names []string) {
	for check, r := range checks {
		if r == result {
			names = append(names, check)
		}
	}
	slices.Sort(names)
	return names
}
