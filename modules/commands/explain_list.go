package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"kontor/server/endpoint"
	"kontor/server/settings"
)

type explainCommand struct{ URL, Token, Request string }

func (l *commandLine) explainList() *cobra.Command {
	c := &explainCommand{}
	cmd := &cobra.Command{
		Use: "explain <request> --token=<token>", Short: "Explain how the running server reads a list, and what takes time.",
		Long: `The request is one of a list, such as "GET /v1/customers?sort=last_name". The
command sends it and prints each step of the server with its time: which rows it
counted, how it chose to read the page and why, the statement, and how the
database runs it. It prints no rows. The token must be that of an administrator,
whose rights decide what is read.`,
		Example: "kontor explain --token @token 'GET /v1/notifications?search.read=false&sort=read_at'",
		Args:    arguments(&c.Request), RunE: l.run(c),
	}
	f := cmd.Flags()
	f.StringVar(&c.URL, "url", "", "Address (`URL`) of the server; default: the one of the data directory.")
	f.StringVar(&c.Token, "token", "", "`Token` of an administrator, or @FILE to read it from a file: other users can see flags.")
	required(cmd, "token")
	return cmd
}

// explainTime exceeds the time that the server gives a request.
const explainTime = 60 * time.Second

// Run sends the request and prints the explanation.
func (c explainCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	path, err := listPath(c.Request)
	if err != nil {
		return err
	}
	token, err := readToken(c.Token)
	if err != nil {
		return err
	}
	address, transport, err := serverAt(ctx, c.URL, r.Settings)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport, Timeout: explainTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(address, "/")+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("X-Explain", "true")
	began := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the server did not answer: %w", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("the server did not finish its answer: %w", err)
	}
	took := time.Since(began)
	var refused struct{ Code, Message string }
	if answer.StatusCode != http.StatusOK {
		_ = json.Unmarshal(body, &refused, json.MatchCaseInsensitiveNames(true)) // without them the status tells it
	}
	fmt.Fprintf(p.Stdout, "GET %s: status %d in %.1f ms\n", path, answer.StatusCode, float64(took.Microseconds())/1000)
	if refused.Code != "" {
		fmt.Fprintf(p.Stdout, "%s: %s\n", refused.Code, refused.Message)
	}
	return printSteps(p.Stdout, answer.Header.Get("X-Explanation"))
}

// listPath returns the path and query of a request of a list.
func listPath(request string) (string, error) {
	request = strings.TrimSpace(request)
	if method, rest, found := strings.Cut(request, " "); found && !strings.HasPrefix(request, "/") {
		if method != http.MethodGet {
			return "", errors.New("only requests with GET are explained")
		}
		request = strings.TrimSpace(rest)
	}
	u, err := url.Parse(request)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") {
		return "", errors.New(`the request must be like "GET /v1/customers?sort=last_name"; name the server with --url`)
	}
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	return u.RequestURI(), nil
}

// printSteps prints the steps of an explanation.
func printSteps(to io.Writer, explanation string) error {
	if explanation == "" {
		return errors.New("the server explained nothing: the request must be one of a list that has a matching row, and the token that of a user or a service account with the role Administrator")
	}
	var steps []endpoint.Step
	if err := json.Unmarshal([]byte(explanation), &steps); err != nil {
		return fmt.Errorf("the explanation cannot be read: %w", err)
	}
	for i, s := range steps {
		fmt.Fprintf(to, "\n%d. %s: %s, %d rows, %.1f ms\n   %s\n", i+1, s.Name, s.Plan, s.Rows, s.Milliseconds, s.Why)
		if s.SQL != "" {
			fmt.Fprintln(to, "   "+s.SQL)
		}
		for _, line := range s.Database {
			fmt.Fprintln(to, "   > "+line)
		}
	}
	return nil
}
