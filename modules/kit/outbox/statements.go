package outbox

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"kontor/store"
)

// placeholder is a parameter of a statement.
var placeholder = regexp.MustCompile(`\$(\d+)`)

// Finish ends the lease of a row and sets columns, whose values are $1 to $n in set. It reports false, and changes nothing, if the lease
// has expired and another attempt took over.
func (b *Outbox[R]) Finish(ctx context.Context, tx *store.Tx, r R, set string, args ...any) (bool, error) {
	const leased = 3 // arguments of the lease
	set = placeholder.ReplaceAllStringFunc(set, func(p string) string {
		n, _ := strconv.Atoi(p[1:]) // the expression matches digits only
		return "$" + strconv.Itoa(n+leased)
	})
	id, attempts := r.Lease()
	changed, err := tx.Exec(ctx, `UPDATE `+b.o.Table+` SET lease_until = 0, leased_by = '', `+set+
		` WHERE id = $1 AND status = 'sending' AND leased_by = $2 AND attempts = $3`, append([]any{id, b.o.Owner, attempts}, args...)...)
	return changed > 0, err
}

// update returns the beginning of a statement that changes rows of a table in a scope.
func update(table, scope, set string) string {
	if scope != "" {
		scope += " AND "
	}
	return `UPDATE ` + table + ` SET ` + set + ` WHERE ` + scope
}

// Release ends the leases of owners on rows of a table, which become due. Without owners it ends all leases.
func Release(ctx context.Context, tx *store.Tx, table, scope string, owners ...string) error {
	sql := update(table, scope, `status = 'retrying', next_attempt_at = $1, lease_until = 0, leased_by = ''`) + `status = 'sending'`
	args := []any{tx.Now()}
	if len(owners) > 0 {
		sql += ` AND leased_by IN (` + store.In(2, len(owners)) + `)`
		args = store.AppendIn(args, owners)
	}
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// recover makes rows due that an earlier process has left: its leases, which are stale unless other nodes use the database, and rows that
// would wait longer than the longest pause. After a restart it is unknown how far the clock was set back.
func (b *Outbox[R]) recover(ctx context.Context) error {
	return b.o.DB.InTx(ctx, func(tx *store.Tx) error {
		var owners []string
		if b.o.DB.Shared() {
			owners = append(owners, b.o.Owner)
		}
		if err := Release(ctx, tx, b.o.Table, b.o.Scope, owners...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, update(b.o.Table, b.o.Scope, `next_attempt_at = $1`)+
			`(status = 'queued' AND next_attempt_at > $1 OR status = 'retrying' AND next_attempt_at > $2)`,
			tx.Now(), tx.Now().Add(max(MaxRetryAfter, b.o.MaxPause)))
		return err
	})
}

// followClock records that the worker runs now. If the clock was set back since the last run, waiting rows and leases move back by as
// much. Otherwise they would wait until the old time comes again.
func (b *Outbox[R]) followClock(ctx context.Context) error {
	now := b.o.DB.Now()
	if back := b.LastRun() - now; back >= store.Time(clockSlack/time.Millisecond) {
		err := b.o.DB.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, update(b.o.Table, b.o.Scope, `next_attempt_at = next_attempt_at - $1, lease_until = lease_until - $1`)+
				`status IN ('queued', 'retrying', 'sending')`, int64(back))
			return err
		})
		if err != nil {
			return fmt.Errorf("move rows of %s back with the clock: %w", b.o.Table, err)
		}
	}
	b.lastRun.Store(int64(now))
	return nil
}
