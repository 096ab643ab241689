package notifications_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// BenchmarkNotify writes events for few and many recipients.
func BenchmarkNotify(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("recipients=%d", n), func(b *testing.B) {
			db := storetest.Open(b)
			s := service(b, db)
			users := newIDs(n)
			notify(b, db, s, customerEvent(users...))
			commits, used, rounds := db.Stats().Commits, servertest.ProcessorTime(b), 0
			for b.Loop() {
				notify(b, db, s, customerEvent(users...))
				rounds++
			}
			b.ReportMetric(float64((servertest.ProcessorTime(b)-used).Microseconds())/float64(rounds)/1000, "cpu-ms/op")
			b.ReportMetric(float64(db.Stats().Commits-commits)/float64(rounds), "syncs/op")
		})
	}
}

// BenchmarkList reads ten notifications of a user who has few or many.
func BenchmarkList(b *testing.B) {
	s := servertest.Start(b)
	few, many := s.User(access.Customer), s.User(access.Customer)
	fill(b, s.DB, few.UserID, 100)
	fill(b, s.DB, many.UserID, 100_000)
	var ratios []float64
	for b.Loop() {
		var times [2]time.Duration
		for i, user := range []*servertest.Client{few, many} {
			list(b, user, "")
			began := time.Now()
			for range 200 {
				list(b, user, "")
			}
			times[i] = time.Since(began)
		}
		ratios = append(ratios, float64(times[1])/float64(times[0]))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
}

// fill writes notifications for one user.
func fill(tb testing.TB, db *store.DB, user string, n int) {
	tb.Helper()
	const insert = `
		INSERT INTO notifications (id, notice_id, user_id, customer_id, event, title_key, content_key, rec_type, rec_id, metadata, system, created_at)
		VALUES ($1, $2, $3, $4, 'customer_created', 't', 'c', 'customers', $5, '{"Name":"Vreni Muster"}', FALSE, $6)`
	s := service(tb, db)
	notify(tb, db, s, event.Event{Kind: "filled", Recipients: []string{user}})
	var parentEvent string
	ctx := context.Background()
	if err := db.QueryRow(ctx, `SELECT MAX(id) FROM notices`).Scan(&parentEvent); err != nil {
		tb.Fatal(err)
	}
	const batch = 1000
	for written := 0; written < n; written += batch {
		err := db.InTx(ctx, func(tx *store.Tx) error {
			for i := range min(batch, n-written) {
				if _, err := tx.Exec(ctx, insert, store.NewID(), parentEvent, user, store.NilID, store.NewID(), tx.Now().Add(time.Duration(written+i)*time.Millisecond)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}
