package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kontor/server/client"
	"kontor/server/settings"
)

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
		Args:    arguments(&c.File), RunE: l.run(c.Run),
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
func (c *importCustomersCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	file, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	server, err := clientOf(ctx, c.Token, c.URL, r.Settings)
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
func (c *importCustomersCommand) report(ctx context.Context, p Process, server *client.Client, i *client.Import) error {
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
