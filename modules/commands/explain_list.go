package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"kontor/locales"
	"kontor/modules/bank/invoices"
	"kontor/modules/bank/invoices/qrbill"
	"kontor/server/client"
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

type qrbillCommand struct {
	Files  []string
	Page   int
	Strict bool
}

func (l *commandLine) qrbill() *cobra.Command {
	c := &qrbillCommand{}
	cmd := &cobra.Command{
		Use: "qrbill <files>...", Short: "Read Swiss QR-bills from files and print them as JSON.",
		Long: `The files are PDF documents or images; "-" reads standard input. The command
prints one line of JSON per file. It needs neither a server nor a data
directory. It exits with 1 when a file contains no readable bill; the file's
line states the reason.`,
		Example: "kontor qrbill --strict invoice.pdf scan.jpg\ncurl -s https://shop.example/invoice.pdf | kontor qrbill -",
		Args:    arguments(&c.Files), RunE: l.run(c),
	}
	cmd.Flags().IntVar(&c.Page, "page", 0, "Search only this `page`, counted from 1; 0 means all pages.")
	cmd.Flags().BoolVar(&c.Strict, "strict", false, "Reject bills that violate the Swiss standard.")
	return cmd
}

// Run reads the files.
func (c qrbillCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	texts, err := locales.Load()
	if err != nil {
		return err
	}
	s := r.Settings.Invoices
	reader := qrbill.NewReader(qrbill.Config{
		Limits:   qrbill.Limits{Bytes: int(s.MaxBytes), Pages: s.MaxPages, Time: s.Timeout},
		Wait:     engineWait,
		CacheDir: engineCache(),
	})
	defer reader.Close(ctx)
	return invoices.ReadFiles(ctx, reader, texts, p.Stdin, p.Stdout, qrbill.Options{Page: c.Page, Strict: c.Strict}, c.Files...)
}

// engineWait bounds compiling the PDF engine. It is generous, because this process has no other work.
const engineWait = 10 * time.Minute

func (l *commandLine) imports() *cobra.Command {
	return group("import", "Import records into a running server.", l.importCustomers())
}

type importCustomersCommand struct {
	File, URL, Token, OnDuplicate string
	DryRun                        bool
}

func (l *commandLine) importCustomers() *cobra.Command {
	c := &importCustomersCommand{}
	cmd := &cobra.Command{
		Use: "customers <file> --token=<token>", Short: "Import customers from a CSV file.",
		Long: `The file has the columns of the list of customers as a table, and external_id, in
any order; last_name and email are required. The import runs in the server, in
the name of the account of the token, and continues when this command is
interrupted. Rejected rows are printed as CSV; the rest goes to standard error.
The same file sent again continues: rows that were imported are duplicates.`,
		Example: "kontor import customers customers.csv --token @token --dry-run\nkontor import customers customers.csv --token @token --on-duplicate=update",
		Args:    arguments(&c.File), RunE: l.run(c),
	}
	f := cmd.Flags()
	f.StringVar(&c.URL, "url", "", "Address (`URL`) of the server; default: the one of the data directory.")
	f.StringVar(&c.Token, "token", "", "`Token` of a service account, or @FILE to read it from a file: other users can see flags.")
	f.StringVar(&c.OnDuplicate, "on-duplicate", "skip", "What to do with rows whose customers exist: skip, update or reject.")
	f.BoolVar(&c.DryRun, "dry-run", false, "Only count what the import would do.")
	suggest(cmd, "on-duplicate", "skip", "update", "reject")
	required(cmd, "token")
	return cmd
}

// importPause is the time between two looks at an import.
const importPause = 500 * time.Millisecond

// Run sends the file and waits for the end of the import.
func (c importCustomersCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	file, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	token, err := readToken(c.Token)
	if err != nil {
		return err
	}
	address, transport, err := serverAt(ctx, c.URL, r.Settings)
	if err != nil {
		return err
	}
	server, err := client.New(address, client.WithToken(token), client.WithTransport(transport))
	if err != nil {
		return err
	}
	i, err := server.Customers.Import(ctx, client.ImportFileFormInput{File: client.File{Name: filepath.Base(c.File), MediaType: "text/csv", Data: file}},
		client.CustomersImportParams{DryRun: new(c.DryRun), OnDuplicate: c.OnDuplicate})
	if err != nil {
		return fmt.Errorf("the file was refused: %w", err)
	}
	bar := &progressBar{out: p.Stderr, terminal: isTerminal(p.Stderr)}
	for i.State == "queued" || i.State == "running" {
		bar.show(i.Done, i.Rows)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the import %s continues in the server: GET /v1/imports/%s shows it", i.ID, i.ID)
		case <-time.After(importPause):
		}
		now, err := server.Imports.Get(ctx, i.ID)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("the import %s continues in the server, but its state cannot be read: %w", i.ID, err)
		}
		if err == nil {
			i = now
		}
	}
	bar.end(i.Done, i.Rows)
	return c.report(ctx, p, server, i)
}

// report prints how an import ended. Without a rejected row it returns nil.
func (c importCustomersCommand) report(ctx context.Context, p Process, server *client.Client, i *client.Import) error {
	would := ""
	if i.DryRun {
		would = "dry run, nothing was changed: "
	}
	fmt.Fprintf(p.Stderr, "%s%d created, %d updated, %d duplicates, %d rejected\n", would, i.Created, i.Updated, i.Duplicates, i.Rejected)
	if i.Rejected > 0 {
		rows, err := server.Imports.Rejected(ctx, i.ID)
		if err != nil {
			return fmt.Errorf("the rejected rows cannot be read: %w", err)
		}
		if _, err := io.WriteString(p.Stdout, rows); err != nil {
			return err
		}
	}
	switch {
	case i.Failure != nil:
		return fmt.Errorf("the import failed after %d of %d rows: %s", i.Done, i.Rows, i.Failure.Message)
	case i.State == "failed":
		return errors.New("the import failed")
	case i.Rejected > 0:
		return fmt.Errorf("%d rows were rejected", i.Rejected)
	}
	return nil
}

// progressBar shows how far a work has come: as a bar at a terminal, otherwise as a line for each tenth.
type progressBar struct {
	out      io.Writer
	terminal bool
	tenths   int64 // shown last
	shown    bool
}

const barWidth = 40

// show shows the progress.
func (b *progressBar) show(done, total int64) {
	share := int64(barWidth)
	if total > 0 {
		share = done * barWidth / total
	}
	tenths := share * 10 / barWidth
	if b.terminal {
		fmt.Fprintf(b.out, "\r[%s%s] %d of %d rows", strings.Repeat("#", int(share)), strings.Repeat(".", barWidth-int(share)), done, total)
	} else if !b.shown || tenths > b.tenths {
		fmt.Fprintf(b.out, "%d of %d rows\n", done, total)
	}
	b.tenths, b.shown = tenths, true
}

// end shows the last state and ends the line.
func (b *progressBar) end(done, total int64) {
	b.show(done, total)
	if b.terminal {
		fmt.Fprintln(b.out)
	}
}
