package commands

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"kontor/locales"
	"kontor/modules/invoices"
	"kontor/modules/invoices/qrbill"
	"kontor/server/settings"
)

type qrbillCommand struct {
	Files  []string `arg:"" help:"PDF documents or images."`
	Page   int      `help:"Search this page only, counted from 1; 0: all." default:"0" placeholder:"N"`
	Strict bool     `help:"Refuse bills that violate the Swiss standard."`
}

// Help is shown by "kontor qrbill --help".
func (qrbillCommand) Help() string {
	return "One line of JSON is printed for each file. Neither a server nor a data directory is needed. " +
		"The exit code is 1 when a file gave no bill; its line says why."
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
	return invoices.ReadFiles(ctx, reader, texts, p.Stdout, qrbill.Options{Page: c.Page, Strict: c.Strict}, c.Files...)
}

// engineWait is far more than compiling the PDF engine takes: nobody else wants anything of this process.
const engineWait = 10 * time.Minute

// engineCache is where the compiled PDF engine is kept for the next time; empty where the user has no such place.
func engineCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kontor", "pdf-engine")
}
