package commands

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/modules/duty/screening"
	"kontor/server/settings"
)

// screening groups the commands about sanctions lists. A server with a data directory must be stopped, because it holds the directory.
func (l *commandLine) screening() *cobra.Command {
	return group("screening", "Load, list and drop sanctions lists.", l.loadList(), l.listLists(), l.dropList())
}

const listsHelp = "A running server loads lists from the folder of the setting screening.dir, or over\nPOST /v1/screening/lists.\n\n" + stoppedHelp

type screeningLoadCommand struct{ File, Name string }

func (l *commandLine) loadList() *cobra.Command {
	c := &screeningLoadCommand{}
	cmd := &cobra.Command{
		Use: "load <file>", Short: "Load a list, or replace the one of the same name.",
		Long:    "The file is a list of SECO, the United Nations, the European Union, OFAC or\nOpenSanctions, or a folder with the files of OFAC.\n\n" + listsHelp,
		Example: "kontor screening load consolidated-list.xml --name=SECO", Args: arguments(&c.File), RunE: l.run(c),
	}
	cmd.Flags().StringVar(&c.Name, "name", "", "`Name` of the list. Default: that of the file without its extension.")
	return cmd
}

// Run loads a list and prints what has changed.
func (c screeningLoadCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	name := c.Name
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(c.File), filepath.Ext(c.File))
	}
	file, err := screening.FileAt(c.File, name)
	if err != nil {
		return err
	}
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		l, err := m.Screening.Load(ctx, file)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "%s %s: %d entries, %d added, %d changed, %d removed\n", printable(l.Name), printable(l.Version), l.Entries, l.Added, l.Changed, l.Removed)
		return err
	})
}

type screeningListsCommand struct{}

func (l *commandLine) listLists() *cobra.Command {
	return &cobra.Command{
		Use: "lists", Short: "List the lists that are in force.", Long: listsHelp, Example: "kontor screening lists", Args: arguments(), RunE: l.run(screeningListsCommand{}),
	}
}

// Run lists the lists.
func (screeningListsCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		all, err := allRows(ctx, m.Screening.Lists)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tFORMAT\tVERSION\tENTRIES\tLOADED\tNAME")
		for _, l := range all {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", l.ID, l.Format, printable(l.Version), l.Entries, l.LoadedAt, printable(l.Name))
		}
		return table.Flush()
	})
}

type screeningDropCommand struct{ ID string }

func (l *commandLine) dropList() *cobra.Command {
	c := &screeningDropCommand{}
	return &cobra.Command{
		Use: "drop <id>", Short: "Drop a list.", Long: "\"kontor screening lists\" prints the ids.\n\n" + listsHelp,
		Example: "kontor screening drop 01a1fb8a-2c0a-7d94-ab9c-5d46a808af71", Args: arguments(&c.ID), RunE: l.run(c),
	}
}

// Run drops the list.
func (c screeningDropCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	return administer(ctx, p, r, func(ctx context.Context, m *app.Modules) error {
		if err := m.Screening.Drop(ctx, c.ID); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "%s was dropped\n", printable(c.ID))
		return err
	})
}
