package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kontor/server/settings"
)

type settingsCommand struct{ JSON bool }

func (l *commandLine) showSettings() *cobra.Command {
	c := &settingsCommand{}
	cmd := &cobra.Command{
		Use: "settings", Short: "Show the value, the source and the meaning of every setting.",
		Example: "kontor settings --config=/etc/kontor.yaml\nkontor settings --json", Args: arguments(), RunE: l.run(c),
	}
	cmd.Flags().BoolVar(&c.JSON, "json", false, "Print JSON.")
	cmd.AddCommand(l.checkSettings())
	return cmd
}

// Run prints every setting. Secrets are masked.
func (c settingsCommand) Run(_ context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	if c.JSON {
		out := json.NewEncoder(p.Stdout)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(r.Lines())
	}
	table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVALUE\tSOURCE\tMEANING")
	for _, l := range r.Lines() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", l.Name, dashed(l.Text), l.Source, l.Meaning)
	}
	return table.Flush()
}
