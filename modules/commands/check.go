package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
		Args:    arguments(), RunE: l.run(c),
	}
	cmd.Flags().BoolVar(&c.Files, "files", false, "Also decrypt the content of all files and compare it with their digests, which reads all of it.")
	cmd.Flags().StringVar(&c.Record, "record", "", "Check one record only, as the API returned it: its `type/id`, with its JSON on standard input.")
	return cmd
}

// Run checks the database, the audit trail, and the records against the audit trail.
func (c checkCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	p.warn(r)
	from, err := readable(r)
	if err != nil {
		return err
	}
	if c.Record != "" {
		return c.checkRecord(ctx, p, from)
	}
	var compared, files int64
	var oldForm error
	report, err := inspect.Check(ctx, from, func(ctx context.Context, e *audittrail.Evidence) (err error) {
		var breaks records.Breaks
		compared, oldForm, err = checkRecords(ctx, e)
		if err = breaks.Add(err); err == nil && c.Files {
			files, err = app.CheckFiles(ctx, e)
			err = breaks.Add(err)
		}
		return cmp.Or(err, breaks.Err())
	})
	if err != nil {
		return err
	}
	text := describeCheck(report, isShared(r))
	if report.KeyChecked {
		text = describeRecords(text, compared, oldForm)
		if c.Files {
			text += fmt.Sprintf(", the content of %d files matches their digests", files)
		}
	}
	_, err = fmt.Fprintf(p.Stdout, "%s is intact: %s\n", placeName(r), text)
	return err
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
func (c checkCommand) checkRecord(ctx context.Context, p Process, from inspect.Source) error {
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
	_, err = fmt.Fprintln(p.Stdout, describeRecord(c.Record, found, newest))
	return err
}

// recordProof reads the flag --record.
func (c checkCommand) recordProof() (proof records.Proof, id string, err error) {
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
