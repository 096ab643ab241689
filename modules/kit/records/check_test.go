package records_test

import (
	"context"
	"testing"

	"kontor/modules/kit/records"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// A database of an earlier version, which was not started with this one yet, has no table of records that were added since.
func TestCheck_LeavesOutTablesOfLaterMigrations(t *testing.T) {
	db := storetest.Open(t)
	later := records.Proof{Type: "later", From: "later", Key: "id", Migration: 1 << 30}
	for migration, fails := range map[int64]bool{1 << 30: false, 0: true} {
		later.Migration = migration
		_, err := inspect.Check(t.Context(), storetest.Source(storetest.OptionsOf(t, db)), func(ctx context.Context, e *audittrail.Evidence) error {
			_, err := records.Check(ctx, e, []records.Proof{later}, 0)
			return err
		})
		if (err != nil) != fails {
			t.Errorf("migration %d: got %v", migration, err)
		}
	}
}
