package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/modules/kit/records"
	"kontor/server/settings"
	"kontor/store/audittrail"
	"kontor/store/inspect"
)

type checkCommand struct {
	Files  bool
	Record string
}

func (l *commandLine) check() *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use: "check", Short: "Check the database, the audit trail, and the records against it.",
		Long: `The server may be running, and nothing is changed. The command prints every
record that differs from the audit trail, or the first error of the database
itself, and exits with 1.`,
		Example: "kontor check\nkontor check --files\nkontor check --record=payers/01a1fb8a-2c0a-7d94-ab9c-5d46a808af71 < payer.json",
		Args:    arguments(), RunE: l.run(c.Run),
	}
	cmd.Flags().BoolVar(&c.Files, "files", false, "Also decrypt the content of all files and compare it with their digests, which reads all of it.")
	cmd.Flags().StringVar(&c.Record, "record", "", "Check one record only, as the API returned it: its `type/id`, with its JSON on standard input.")
	return cmd
}

// Run checks the database, the audit trail, and the records against the audit trail.
func (c *checkCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	from, err := readable(r)
	if err != nil {
		return err
	}
	if c.Record != "" {
		return c.checkRecord(ctx, p, from)
	}
	text, err := checkAll(ctx, from, isShared(r), c.Files)
	if err == nil {
		err = requireNoSandbox(ctx, r)
	}
	if err != nil {
		return err
	}
	return p.say("%s is intact: %s", placeName(r), text)
}

// checkAll checks a database and its records, and describes what it has covered.
func checkAll(ctx context.Context, from inspect.Source, ofServer, withFiles bool) (text string, err error) {
	var compared, files int64
	var oldForm error
	report, err := inspect.Check(ctx, from, func(ctx context.Context, e *audittrail.Evidence) (err error) {
		var breaks records.Breaks
		compared, oldForm, err = checkRecords(ctx, e)
		if err = breaks.Add(err); err == nil && withFiles {
			files, err = app.CheckFiles(ctx, e)
			err = breaks.Add(err)
		}
		return cmp.Or(err, breaks.Err())
	})
	if text = describeCheck(report, ofServer); err != nil || !report.KeyChecked {
		return text, err
	}
	if text = describeRecords(text, compared, oldForm); withFiles {
		text += fmt.Sprintf(", the content of %d files matches their digests", files)
	}
	return text, nil
}

// checkRecords compares the records with the audit trail. oldForm says that they are of an earlier version, which does not allow it.
func checkRecords(ctx context.Context, e *audittrail.Evidence) (compared int64, oldForm, err error) {
	compared, err = app.CheckRecords(ctx, e)
	if errors.Is(err, app.ErrOldForm) {
		oldForm, err = err, nil
	}
	return compared, oldForm, err
}

func describeRecords(text string, compared int64, oldForm error) string {
	if oldForm != nil {
		return text + "; " + oldForm.Error()
	}
	return text + fmt.Sprintf(", %d records match the audit trail", compared)
}

// describeCheck says what a check has covered, of a data directory or of a database that a server keeps.
func describeCheck(c inspect.Report, ofServer bool) string {
	text := fmt.Sprintf("schema %d, %d bytes, %d audit entries", c.Schema, c.Bytes, c.AuditEntries)
	if c.MarkChecked {
		text += ", no acknowledged write is missing"
	}
	if !c.KeyChecked {
		text += "; the end of the audit trail and the records were not checked, because the master key is missing"
	}
	switch {
	case c.Pages == 0 && ofServer:
		text += "; its server keeps no checksums of pages (pg_checksums adds them)"
	case c.Pages == 0:
		text += "; its pages have no checksums (restore a backup to add them)"
	}
	return text
}

// maxRecordBytes is the size of the largest record that is read from standard input.
const maxRecordBytes = 16 << 20

// checkRecord compares a record that the API returned with the audit trail.
func (c *checkCommand) checkRecord(ctx context.Context, p Process, from inspect.Source) error {
	proof, id, err := c.recordProof()
	if err != nil {
		return err
	}
	record, err := io.ReadAll(io.LimitReader(p.Stdin, maxRecordBytes))
	if err != nil {
		return fmt.Errorf("read the record from standard input: %w", err)
	}
	var found, newest audittrail.Statement
	report, err := inspect.Check(ctx, from, func(ctx context.Context, e *audittrail.Evidence) error {
		found, newest, err = proof.Prove(ctx, e, id, record)
		return err
	})
	if err != nil {
		return err
	}
	if !report.KeyChecked {
		return errors.New("a record cannot be checked without the master key; set KONTOR_SECRET_KEY")
	}
	return p.say("%s", describeRecord(c.Record, found, newest))
}

// recordProof reads the flag --record.
func (c *checkCommand) recordProof() (proof records.Proof, id string, err error) {
	recordType, id, ok := strings.Cut(c.Record, "/")
	var types []string
	for _, p := range app.Proofs() {
		if ok && p.Type == recordType {
			return p, id, nil
		}
		types = append(types, p.Type)
	}
	slices.Sort(types)
	return proof, "", fmt.Errorf("--record=%s: want TYPE/ID, where TYPE is one of %s", c.Record, strings.Join(types, ", "))
}

// describeRecord reports which audit entry a record matches, and what has happened to it since.
func describeRecord(name string, found, newest audittrail.Statement) string {
	describe := func(s audittrail.Statement) string {
		return fmt.Sprintf("audit entry %d (%s by %s at %s)", s.Seq, s.Action, s.Actor, s.At)
	}
	text := name + " matches " + describe(found)
	switch {
	case newest.Seq == found.Seq:
		return text + "; it has not changed since"
	case newest.Digest == "":
		return text + "; it was deleted later by " + describe(newest)
	}
	return text + "; it was changed later, last by " + describe(newest)
}

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
			show := l.process.showCheck
			if asJSON {
				show = l.process.encodeCheck
			}
			if err := show(file, report); err != nil {
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

func (p Process) encodeCheck(_ string, report settings.Report) error {
	out := settingsCheck{Valid: report.Result != nil, Mistakes: []string{}, Warnings: []string{}, Changed: []settings.Line{}, Risks: []settings.Risk{}}
	for _, mistake := range report.Mistakes {
		out.Mistakes = append(out.Mistakes, mistake.Error())
	}
	if report.Result != nil {
		out.Warnings, out.Changed = append(out.Warnings, report.Result.Warnings...), append(out.Changed, report.Result.Changed()...)
		out.Risks = append(out.Risks, report.Risks...)
	}
	return p.printJSON(out)
}

func (p Process) showCheck(file string, report settings.Report) error {
	w := p.Stdout
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
		return p.say("All settings have their defaults.")
	}
	fmt.Fprintln(w, "These settings differ from their defaults:")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVALUE\tDEFAULT\tSOURCE")
	for _, line := range changed {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", line.Name, cmp.Or(line.Text, "-"), cmp.Or(line.DefaultText, "-"), line.Source)
	}
	return table.Flush()
}

func (l *commandLine) showSettings() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "settings", Short: "Show the value, the source and the meaning of every setting.",
		Example: "kontor settings --config=/etc/kontor.yaml\nkontor settings --json", Args: arguments(),
		// Secrets are masked.
		RunE: l.run(func(_ context.Context, p Process, r *settings.Result) error {
			p.warn(r)
			if asJSON {
				return p.printJSON(r.Lines())
			}
			table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tVALUE\tSOURCE\tMEANING")
			for _, l := range r.Lines() {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", l.Name, cmp.Or(l.Text, "-"), l.Source, l.Meaning)
			}
			return table.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print JSON.")
	cmd.AddCommand(l.checkSettings())
	return cmd
}
