package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"kontor/licences"
)

func (l *commandLine) licences() *cobra.Command {
	return &cobra.Command{
		Use: "licences", Short: "Print the licence of Kontor, and those of the software in this executable.",
		Example: "kontor licences | less", Args: arguments(), RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(l.process.Stdout, "%s\n%s", licences.Kontor, licences.ThirdParty)
			return err
		},
	}
}
