package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kontor/server/settings"
)

// settingsCheck is the output of "kontor settings check --json".
type settingsCheck struct {
	Valid    bool            `json:"valid"`
	Mistakes []string        `json:"mistakes"`
	Warnings []string        `json:"warnings"`
	Changed  []settings.Line `json:"changed"`
	Risks    []settings.Risk `json:"risks"`
}

func (l *commandLine) checkSettings() *cobra.Command {
	var file string
	var asJSON, strict, noFiles bool
	cmd := &cobra.Command{
		Use: "check <file>", Short: "Say what a settings file would do, without starting anything.",
		Long: `The command prints every mistake, the settings that differ from their
defaults, and valid values that weaken a protection. Environment and flags
count as they do for a start. It exits with 1 for mistakes, with --strict also
for weakened protections. It also checks the files and directories that the
settings name, unless --no-files says that they are on another machine. It
changes nothing, and connects to nothing.`,
		Example: "kontor settings check /etc/kontor.yaml\nkontor settings check kontor.yaml --strict --no-files --json", Args: arguments(&file),
		RunE: func(*cobra.Command, []string) error {
			report := settings.Check(settings.Input{Flags: l.given(), Environ: l.process.Environ, File: file})
			if report.Result != nil && !noFiles {
				if mistakes := pathMistakes(&report.Result.Settings); len(mistakes) > 0 {
					report = settings.Report{Mistakes: mistakes}
				}
			}
			show := showCheck
			if asJSON {
				show = encodeCheck
			}
			if err := show(l.process.Stdout, file, report); err != nil {
				return err
			}
			switch {
			case report.Result == nil:
				return fmt.Errorf("%s prevents the start; correct what is printed above", file)
			case strict && len(report.Risks) > 0:
				return errors.New("settings weaken protections, and --strict forbids that")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print JSON.")
	cmd.Flags().BoolVar(&noFiles, "no-files", false, "Do not look at files and directories that the settings name.")
	cmd.Flags().BoolVar(&strict, "strict", false, "Exit with 1 for weakened protections, too.")
	return cmd
}

func encodeCheck(w io.Writer, _ string, report settings.Report) error {
	out := settingsCheck{Valid: report.Result != nil, Mistakes: []string{}, Warnings: []string{}, Changed: []settings.Line{}, Risks: []settings.Risk{}}
	for _, mistake := range report.Mistakes {
		out.Mistakes = append(out.Mistakes, mistake.Error())
	}
	if report.Result != nil {
		out.Warnings, out.Changed = append(out.Warnings, report.Result.Warnings...), append(out.Changed, report.Result.Changed()...)
		out.Risks = append(out.Risks, report.Risks...)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

func showCheck(w io.Writer, file string, report settings.Report) error {
	for _, mistake := range report.Mistakes {
		fmt.Fprintln(w, "mistake: "+mistake.Error())
	}
	if report.Result == nil {
		return nil
	}
	fmt.Fprintf(w, "%s is valid.\n", file)
	for _, warning := range report.Result.Warnings {
		fmt.Fprintln(w, "warning: "+warning)
	}
	for _, risk := range report.Risks {
		fmt.Fprintf(w, "risk: %s: %s\n", risk.Name, risk.Meaning)
	}
	changed := report.Result.Changed()
	if len(changed) == 0 {
		_, err := fmt.Fprintln(w, "All settings have their defaults.")
		return err
	}
	fmt.Fprintln(w, "These settings differ from their defaults:")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVALUE\tDEFAULT\tSOURCE")
	for _, line := range changed {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", line.Name, dashed(line.Text), dashed(line.DefaultText), line.Source)
	}
	return table.Flush()
}

// dashed returns a value for a table.
func dashed(value string) string {
	if value == "" {
		return "-"
	}
	return value
}
