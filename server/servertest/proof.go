package servertest

import (
	"context"
	"errors"
	"testing"

	"kontor/modules/app"
	"kontor/modules/kit/records"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// SkipRecordCheck disables the check of records at the end of the test. Tests need it if they write records by SQL, without audit
// entries.
func (s *Server) SkipRecordCheck() { s.skipCheck = true }

// checkRecords fails the test if a record differs from its newest audit entry. Then a write added no entry, or a different one.
func (s *Server) checkRecords() {
	if _, benchmark := s.t.(*testing.B); benchmark || s.skipCheck {
		return
	}
	_, err := inspect.Check(context.Background(), storetest.Source(storetest.OptionsOf(s.t, s.DB)), func(ctx context.Context, e *audittrail.Evidence) error {
		_, err := app.CheckRecords(ctx, e)
		return err
	})
	if broken := (*records.Break)(nil); errors.As(err, &broken) {
		s.t.Errorf("a record differs from the audit trail: %v", err)
	}
}
