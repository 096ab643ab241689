package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kontor/modules/app"
	"kontor/modules/kit/records"
	"kontor/server/settings"
	"kontor/store"
)

// maxProven is the largest record that is read from standard input.
const maxProven = 16 << 20

// prove compares a record that the API answered with the audit trail.
func (c checkCommand) prove(ctx context.Context, p Process, r *settings.Result) error {
	recType, id, ok := strings.Cut(c.Record, "/")
	proofs := app.Proofs()
	i := slices.IndexFunc(proofs, func(p records.Proof) bool { return p.Type == recType })
	if !ok || i < 0 {
		var known []string
		for _, p := range proofs {
			known = append(known, p.Type)
		}
		return fmt.Errorf("--record %q: give TYPE/ID, with one of the types %s", c.Record, strings.Join(known, ", "))
	}
	answer, err := io.ReadAll(io.LimitReader(p.Stdin, maxProven))
	if err != nil {
		return fmt.Errorf("read the record from standard input: %w", err)
	}
	var found, newest store.Statement
	report, err := store.CheckWith(ctx, storeOptions(r), func(ctx context.Context, e *store.Evidence) error {
		found, newest, err = proofs[i].Prove(ctx, e, id, answer)
		return err
	})
	if err != nil {
		return err
	}
	if !report.KeyChecked {
		return errors.New("a record is proven with the master key, which is not here (set KONTOR_SECRET_KEY)")
	}
	text := fmt.Sprintf("%s is as audit entry %d left it: %s by %s at %s", c.Record, found.Seq, found.Action, found.Actor, found.At)
	switch {
	case newest.Seq == found.Seq:
		text += "; it has not been changed since"
	case newest.Digest == "":
		text += fmt.Sprintf("; it was deleted since, as entry %d says: %s by %s at %s", newest.Seq, newest.Action, newest.Actor, newest.At)
	default:
		text += fmt.Sprintf("; it was changed since, last by entry %d: %s by %s at %s", newest.Seq, newest.Action, newest.Actor, newest.At)
	}
	_, err = fmt.Fprintln(p.Stdout, text)
	return err
}
