package notifications_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kontor/modules/notice"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/storetest"
)

// swarmEnv makes the test binary the clients of a benchmark: they are not to be measured with the server.
const swarmEnv = "KONTOR_TEST_SWARM"

func TestMain(m *testing.M) {
	if os.Getenv(swarmEnv) != "" {
		if err := swarm(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// swarm opens a stream for each line "address token" up to an empty line, says "ready", and then for each round of
// events, one to every stream, how long they were under way: the data holds when they were sent.
func swarm(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	arrived := make(chan time.Duration, 1<<16)
	n := 0
	for lines.Scan() && lines.Text() != "" {
		address, token, _ := strings.Cut(lines.Text(), " ")
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(conn, "GET /v1/notifications/sse HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", token); err != nil {
			return err
		}
		opened := make(chan error, 1)
		go listen(conn, opened, arrived)
		if err := <-opened; err != nil {
			return err
		}
		n++
	}
	fmt.Fprintln(out, "ready")
	for {
		took := make([]time.Duration, n)
		for i := range took {
			took[i] = <-arrived
		}
		slices.Sort(took)
		fmt.Fprintln(out, took[n/2].Nanoseconds(), took[n*99/100].Nanoseconds(), took[n-1].Nanoseconds())
	}
}

const stamp = `"content":"sent `

// listen reads one stream.
func listen(conn net.Conn, opened chan<- error, arrived chan<- time.Duration) {
	buffer := make([]byte, 2048)
	filled := 0
	isOpen := false
	for {
		n, err := conn.Read(buffer[filled:])
		if err != nil {
			if !isOpen {
				opened <- err
			}
			return
		}
		filled += n
		if !isOpen {
			if !bytes.Contains(buffer[:filled], []byte("event: open\n")) {
				continue
			}
			isOpen, filled = true, 0
			opened <- nil
			continue
		}
		for {
			end := bytes.Index(buffer[:filled], []byte("\n\n"))
			if end < 0 {
				break
			}
			if at := bytes.Index(buffer[:end], []byte(stamp)); at >= 0 {
				text := buffer[at+len(stamp) : end]
				sent, _ := strconv.ParseInt(string(text[:bytes.IndexByte(text, '"')]), 10, 64)
				arrived <- time.Duration(time.Now().UnixNano() - sent)
			}
			filled = copy(buffer, buffer[end+2:filled])
		}
	}
}

// crowd is a running server with many streams, whose clients are another process.
type crowd struct {
	*servertest.Server
	users   []string
	process *exec.Cmd
	out     *bufio.Scanner

	streams   int
	perStream float64 // bytes of memory
}

func newCrowd(b *testing.B, users, each int) *crowd {
	b.Helper()
	c := &crowd{Server: servertest.Start(b, func(s *settings.Settings) {
		s.Notifications.SSE.ConnectionsPerUser, s.Auth.CoolingOff.FreeAttempts = each, 1000
	}), streams: users * each}
	var tokens []string
	for range users {
		u := c.User(access.Customer)
		c.users, tokens = append(c.users, u.UserID), append(tokens, u.Token)
	}
	c.process = exec.Command(os.Args[0])
	c.process.Env = append(os.Environ(), swarmEnv+"=1")
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.process.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.kill)
	c.out = bufio.NewScanner(out)
	before := rss(b)
	for _, token := range tokens {
		for range each {
			fmt.Fprintf(in, "%s %s\n", c.Address, token)
		}
	}
	fmt.Fprintln(in)
	if !c.out.Scan() || c.out.Text() != "ready" {
		b.Fatalf("the clients said %q", c.out.Text())
	}
	c.perStream = float64(rss(b)-before) / float64(c.streams)
	return c
}

func (c *crowd) kill() {
	_ = c.process.Process.Kill()
	_ = c.process.Wait()
}

// rss is the memory that the system has given to this process, after what is not needed has been given back.
func rss(b *testing.B) int {
	b.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("the memory of a process is read from /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(status))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// BenchmarkStreams opens 10,000 streams, ten for each of 1,000 users, and tells all of them of one event after another.
// Server and clients share the machine.
func BenchmarkStreams(b *testing.B) {
	const users, each = 1000, 10
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < users*each+1000 {
		b.Skip("ulimit -n 12000 is needed")
	}
	c := newCrowd(b, users, each)
	var rates, p99s []float64
	used := servertest.ProcessorTime(b)
	for b.Loop() {
		n := customerNotice(c.users...)
		n.Event, n.Content = "measured", fmt.Sprintf("sent %d", time.Now().UnixNano())
		notify(b, c.DB, c.Notifications, n)
		if !c.out.Scan() {
			b.Fatal("the clients are gone")
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

// BenchmarkDeadClients kills 5,000 clients at once and measures how long the server holds on to their streams.
func BenchmarkDeadClients(b *testing.B) {
	for b.Loop() {
		c := newCrowd(b, 500, 10)
		before := runtime.NumGoroutine()
		began := time.Now()
		c.kill()
		eventually(b, func() bool { return len(c.Notifications.Connected()) == 0 })
		b.ReportMetric(time.Since(began).Seconds(), "s-to-free")
		eventually(b, func() bool { return runtime.NumGoroutine() <= before-c.streams+100 })
	}
}

// BenchmarkNotify writes notices to few and many recipients.
func BenchmarkNotify(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("recipients=%d", n), func(b *testing.B) {
			db := storetest.Open(b)
			s := service(b, db)
			users := newIDs(n)
			notify(b, db, s, customerNotice(users...))
			commits, used, rounds := db.Stats().Commits, servertest.ProcessorTime(b), 0
			for b.Loop() {
				notify(b, db, s, customerNotice(users...))
				rounds++
			}
			b.ReportMetric(float64((servertest.ProcessorTime(b)-used).Microseconds())/float64(rounds)/1000, "cpu-ms/op")
			b.ReportMetric(float64(db.Stats().Commits-commits)/float64(rounds), "syncs/op")
		})
	}
}

// BenchmarkList reads ten of a user's notifications, of which there are few or many.
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

// fill writes copies for one user.
func fill(tb testing.TB, db *store.DB, user string, n int) {
	tb.Helper()
	const insert = `
		INSERT INTO notifications (id, notice_id, user_id, customer_id, event, title_key, content_key, rec_type, rec_id, metadata, system, created_at)
		VALUES ($1, $2, $3, $4, 'customer_created', 't', 'c', 'customers', $5, '{"Name":"Vreni Muster"}', FALSE, $6)`
	s := service(tb, db)
	notify(tb, db, s, notice.Notice{Event: "filled", Recipients: []string{user}})
	var source string
	ctx := context.Background()
	if err := db.QueryRow(ctx, `SELECT MAX(id) FROM notices`).Scan(&source); err != nil {
		tb.Fatal(err)
	}
	const batch = 1000
	for written := 0; written < n; written += batch {
		err := db.InTx(ctx, func(tx *store.Tx) error {
			for i := range min(batch, n-written) {
				if _, err := tx.Exec(ctx, insert, store.NewID(), source, user, store.NilID, store.NewID(), tx.Now().Add(time.Duration(written+i)*time.Millisecond)); err != nil {
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
