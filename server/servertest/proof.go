package servertest

import (
	"context"
	"errors"
	"testing"

	"kontor/modules/app"
	"kontor/modules/kit/records"
	"kontor/store/audittrail"
	"kontor/store/inspect"
)

// WritesBehind says that the test writes records by SQL of its own, so that the audit trail cannot know them.
func (s *Server) WritesBehind() { s.behind = true }

// prove fails the test when a record is not as the audit trail knows it: some write path left no entry, or one of another
// form.
func (s *Server) prove() {
	if _, benchmark := s.t.(*testing.B); benchmark || s.behind {
		return
	}
	_, err := inspect.Check(context.Background(), inspect.Source{Dir: s.DB.Dir()}, func(ctx context.Context, e *audittrail.Evidence) error {
		_, err := app.CheckRecords(ctx, e)
		return err
	})
	if broken := (*records.Break)(nil); errors.As(err, &broken) {
		s.t.Errorf("the audit trail does not know a record: %v", err)
	}
}
