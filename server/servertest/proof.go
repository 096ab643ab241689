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

// WritesBehind declares that the test writes records by SQL, so that they have no audit entries.
func (s *Server) WritesBehind() { s.behind = true }

// prove fails the test when a record differs from its newest audit entry: a write left no entry, or one of another form.
func (s *Server) prove() {
	if _, benchmark := s.t.(*testing.B); benchmark || s.behind {
		return
	}
	_, err := inspect.Check(context.Background(), inspect.Source{Dir: s.DB.Dir()}, func(ctx context.Context, e *audittrail.Evidence) error {
		_, err := app.CheckRecords(ctx, e)
		return err
	})
	if broken := (*records.Break)(nil); errors.As(err, &broken) {
		s.t.Errorf("a record differs from the audit trail: %v", err)
	}
}
