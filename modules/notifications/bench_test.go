package notifications_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// BenchmarkStreams opens 10,000 streams, ten for each of 1,000 users, and sends one event after another to all of them.
// Server and clients share the machine.
func BenchmarkStreams(b *testing.B) {
	const users, each = 1000, 10
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < users*each+1000 {
		b.Skip("ulimit -n 12000 is needed")
	}
	c := newStreamLoad(b, users, each)
	var rates, p99s []float64
	used := servertest.ProcessorTime(b)
	for b.Loop() {
		n := customerEvent(c.users...)
		n.Kind, n.Content = "measured", fmt.Sprintf("sent %d", time.Now().UnixNano())
		notify(b, c.DB, c.Notifications, n)
		if !c.out.Scan() {
			b.Fatal("the clients have ended")
		}
		var p50, p99, last int64
		if _, err := fmt.Sscan(c.out.Text(), &p50, &p99, &last); err != nil {
			b.Fatal(err)
		}
		rates, p99s = append(rates, float64(c.streams)/time.Duration(last).Seconds()), append(p99s, float64(p99)/1e6)
	}
	b.ReportMetric(float64((servertest.ProcessorTime(b)-used).Microseconds())/float64(len(rates)*c.streams), "cpu-us/frame")
	slices.Sort(rates)
	slices.Sort(p99s)
	b.ReportMetric(rates[len(rates)/2], "frames/s")
	b.ReportMetric(p99s[len(p99s)/2], "p99-ms")
	b.ReportMetric(c.perStream, "rss-B/stream")
}

// BenchmarkDeadClients kills 5,000 clients at once and measures how long the server keeps their streams.
func BenchmarkDeadClients(b *testing.B) {
	for b.Loop() {
		c := newStreamLoad(b, 500, 10)
		before := runtime.NumGoroutine()
		began := time.Now()
		c.kill()
		eventually(b, func() bool { return len(c.Notifications.Connected()) == 0 })
		b.ReportMetric(time.Since(began).Seconds(), "s-to-free")
		eventually(b, func() bool { return runtime.NumGoroutine() <= before-c.streams+100 })
	}
}

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
