package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"kontor/locales"
	"kontor/modules/bank/invoices"
	"kontor/modules/bank/invoices/qrbill"
	"kontor/server/settings"
)

func (l *commandLine) qrbill() *cobra.Command {
	var files []string
	var o qrbill.Options
	cmd := &cobra.Command{
		Use: "qrbill <files>...", Short: "Read Swiss QR-bills from files and print them as JSON.",
		Long: `The files are PDF documents or images; "-" reads standard input. The command
prints one line of JSON per file. It needs neither a server nor a data
directory. It exits with 1 when a file contains no readable bill; the file's
line states the reason.`,
		Example: "kontor qrbill --strict invoice.pdf scan.jpg\ncurl -s https://shop.example/invoice.pdf | kontor qrbill -",
		Args:    arguments(&files),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
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
			return invoices.ReadFiles(ctx, reader, texts, p.Stdin, p.Stdout, o, files...)
		}),
	}
	cmd.Flags().IntVar(&o.Page, "page", 0, "Search only this `page`, counted from 1; 0 means all pages.")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "Reject bills that violate the Swiss standard.")
	return cmd
}

// engineWait bounds compiling the PDF engine. It is generous, because this process has no other work.
const engineWait = 10 * time.Minute
