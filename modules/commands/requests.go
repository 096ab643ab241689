package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"kontor/server/client"
	"kontor/server/endpoint"
	"kontor/server/settings"
)

type logsCommand struct {
	URL, Token, Path, Caller, Code string
	Status                         []string
	Lines                          int
	Follow, JSON                   bool
}

func (l *commandLine) logs() *cobra.Command {
	c := &logsCommand{}
	cmd := &cobra.Command{
		Use: "logs", Short: "Print the latest requests of a running server.",
		Long: `The server keeps requests in memory if the setting requests.keep says how many;
a sandbox does. A line has the time, the status, the duration, the method and
path, the code of an error and the request id. GET /v1/requests/{seq} and the
console explain why a request was refused, see docs/requests.md.

Without a token, the command asks the sandbox of the data directory by its
socket, and reads as its first administrator.`,
		Example: "kontor logs --follow --status 4xx\nkontor logs --token @token --path '/v1/customers/*' --json",
		Args:    arguments(), RunE: l.run(c.Run),
	}
	f := cmd.Flags()
	f.StringVar(&c.URL, "url", "", "Address (`URL`) of the server; default: the one of the data directory.")
	f.StringVar(&c.Token, "token", "", "`Token` of an administrator, or @FILE to read it from a file: other users can see flags. A sandbox needs none.")
	f.BoolVarP(&c.Follow, "follow", "f", false, "Continue with the requests that follow, until the command is interrupted.")
	f.StringSliceVar(&c.Status, "status", nil, "`Statuses`, such as 404, 4xx or 400..499; separated by commas. Default: all.")
	f.StringVar(&c.Path, "path", "", "A `path`, such as /v1/customers/*. Default: all.")
	f.StringVar(&c.Caller, "caller", "", "The `id` of a user, a service account or an API key. Default: all.")
	f.StringVar(&c.Code, "code", "", "A `code` of an error. Default: all.")
	f.IntVar(&c.Lines, "lines", 20, "The `number` of earlier requests, at most 100.")
	f.BoolVar(&c.JSON, "json", false, "Print each request as one line of JSON.")
	return cmd
}

// Run prints the latest requests, and follows those after them.
func (c *logsCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	params, err := c.params()
	if err != nil {
		return err
	}
	token, err := readToken(c.Token)
	if err != nil {
		return err
	}
	if token == "" && c.URL != "" {
		return errors.New("--url needs --token")
	}
	address, transport, err := serverAt(ctx, c.URL, r.Settings)
	if err != nil {
		return err
	}
	if token == "" {
		own := &sandboxTransport{RoundTripper: transport, dir: r.Settings.Data.Dir}
		defer own.signOut(address)
		transport, token = own, "of the socket" // the transport replaces it
	}
	server, err := client.New(address, client.WithToken(token), client.WithTransport(transport))
	if err != nil {
		return err
	}
	status, err := server.Requests.Status(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the server does not show its requests: %w", err)
	case status.Keep == 0:
		return errors.New("the server keeps no requests; start it with --requests.keep=1000, or with --sandbox")
	}
	print := c.printer(p.Stdout, isTerminal(p.Stdout) && !slices.ContainsFunc(p.Environ, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR=" }))
	seen, err := c.earlier(ctx, server, params, print)
	if err != nil || !c.Follow {
		return err
	}
	return c.follow(ctx, p, server, params, seen, print)
}

// params returns the searches of the flags.
func (c *logsCommand) params() (client.RequestsListParams, error) {
	var statuses, classes []string
	for _, given := range c.Status {
		class, isClass := strings.CutSuffix(given, "xx")
		first, last, _ := strings.Cut(given, "..")
		switch {
		case isClass && len(class) == 1 && class >= "1" && class <= "5":
			classes = append(classes, given)
		case first+last != "" && (first == "" || isStatus(first)) && (last == "" || isStatus(last)):
			statuses = append(statuses, given)
		default:
			return client.RequestsListParams{}, errors.New("--status takes statuses such as 404, 4xx or 400..499")
		}
	}
	if len(statuses) > 0 && len(classes) > 0 {
		return client.RequestsListParams{}, errors.New("--status takes either classes such as 4xx, or statuses; write 4xx as 400..499")
	}
	if c.Lines < 0 || c.Lines > 100 {
		return client.RequestsListParams{}, errors.New("--lines must be from 0 to 100")
	}
	return client.RequestsListParams{
		SearchStatus: client.Filter(strings.Join(statuses, ",")), SearchClass: client.Filter(strings.Join(classes, ",")),
		SearchPath: exactly(c.Path), SearchCaller: exactly(c.Caller), SearchCode: exactly(c.Code),
	}, nil
}

// exactly returns a filter for one text; an empty text filters nothing.
func exactly(text string) client.Filter {
	if text == "" {
		return ""
	}
	return client.Is(text)
}

func isStatus(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 100 && n <= 599
}

// earlier prints the latest requests, oldest first, and returns the number of the last one.
func (c *logsCommand) earlier(ctx context.Context, server *client.Client, params client.RequestsListParams, print func(*client.RequestlogRequest) error) (seen int64, err error) {
	if c.Lines == 0 {
		return 0, nil
	}
	params.Limit = c.Lines
	page, err := server.Requests.List(ctx, params)
	if err != nil {
		return 0, fmt.Errorf("the requests cannot be read: %w", err)
	}
	for _, r := range slices.Backward(page.Data) {
		if err := print(&r); err != nil {
			return seen, err
		}
		seen = r.Seq
	}
	return seen, nil
}

// follow prints the requests of the stream, until the user interrupts it.
func (c *logsCommand) follow(ctx context.Context, p Process, server *client.Client, params client.RequestsListParams, seen int64, print func(*client.RequestlogRequest) error) error {
	var options []client.CallOption
	if seen > 0 {
		options = append(options, client.After(strconv.FormatInt(seen, 10)))
	}
	for frame, err := range server.Requests.Stream(ctx, params, options...) {
		switch {
		case ctx.Err() != nil:
			return nil // interrupted
		case err != nil:
			return fmt.Errorf("the requests cannot be read: %w", err)
		case frame.Open != nil:
			fmt.Fprintln(p.Stderr, "following the requests")
		case frame.Gap != nil:
			fmt.Fprintln(p.Stderr, "requests are missing here: the server has overwritten them, or was restarted")
		case frame.Request != nil:
			if err := print(frame.Request); err != nil {
				return err
			}
		}
	}
	return nil
}

// The colours of a class of status, as escape sequences of a terminal.
var classColours = map[int64]string{2: "\x1b[32m", 3: "\x1b[36m", 4: "\x1b[33m", 5: "\x1b[31m"}

// printer returns a function that prints a request on one line.
func (c *logsCommand) printer(to io.Writer, colour bool) func(*client.RequestlogRequest) error {
	return func(r *client.RequestlogRequest) error {
		if c.JSON {
			text, err := json.Marshal(r, json.Deterministic(true))
			if err == nil {
				_, err = fmt.Fprintln(to, harmless(string(text)))
			}
			return err
		}
		status := strconv.FormatInt(r.Status, 10)
		if begin := classColours[r.Status/100]; colour && begin != "" {
			status = begin + status + "\x1b[0m"
		}
		took := time.Duration(r.Microseconds) * time.Microsecond
		_, err := fmt.Fprintf(to, "%s  %s  %7.1f ms  %-6s %s  %s %s\n", r.At.Local().Format(time.TimeOnly), status, float64(took.Microseconds())/1000,
			harmless(r.Method), harmless(r.Path), harmless(cmp.Or(r.Code, "-")), harmless(r.RequestID))
		return err
	}
}

// harmless replaces what could act on a terminal: a client may have sent it.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, text)
}

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
		Args:    arguments(&c.Request), RunE: l.run(c.Run),
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
func (c *explainCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
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
