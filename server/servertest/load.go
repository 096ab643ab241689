package servertest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/store"
)

// Connections is the number of keep-alive connections of a load.
const Connections = 64

// Load sends n requests to an address over [Connections] keep-alive connections, one at a time on each, and returns the requests
// per second. request returns the bytes of the i-th request; every response must have the status want. The driver runs in the
// measured process and writes raw HTTP to keep its own cost low.
func Load(tb testing.TB, address string, n, want int, request func(i int) []byte) float64 {
	tb.Helper()
	return LoadOver(tb, slices.Repeat([]string{address}, Connections), n, want, request)
}

// LoadOver is Load over one connection to each of the addresses, which may repeat.
func LoadOver(tb testing.TB, addresses []string, n, want int, request func(i int) []byte) float64 {
	tb.Helper()
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var wait sync.WaitGroup
	connections := make([]net.Conn, len(addresses))
	for i := range connections {
		connection, err := net.Dial("tcp", addresses[i])
		if err != nil {
			tb.Fatal(err)
		}
		defer connection.Close()
		connections[i] = connection
	}
	began := time.Now()
	for _, connection := range connections {
		wait.Go(func() {
			reader := bufio.NewReader(connection)
			for failure.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if _, err := connection.Write(request(i)); err != nil {
					failure.Store(&err)
					return
				}
				if err := expect(reader, want); err != nil {
					failure.Store(&err)
					return
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(began)
	if err := failure.Load(); err != nil {
		tb.Fatal(*err)
	}
	return float64(n) / took.Seconds()
}

// expect reads one response and checks its status.
func expect(reader *bufio.Reader, want int) error {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 {
		return fmt.Errorf("status line %q", line)
	}
	status, _ := strconv.Atoi(string(line[9:12])) // zero is never wanted
	length := 0
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if status == want {
		_, err = reader.Discard(length)
		return err
	}
	body, err := io.ReadAll(io.LimitReader(reader, int64(length)))
	return fmt.Errorf("status %d, want %d: %s %w", status, want, body, err)
}

// Request returns the bytes of a request. Headers are given in pairs.
func Request(method, path, body string, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path)
	for i := 0; i < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	fmt.Fprintf(&b, "\r\n%s", body)
	return b.Bytes()
}

// Ratio compares a load with a minimal Fiber handler in alternating rounds, and reports the median of the ratios. Absolute
// numbers differ between machines, and on one machine from minute to minute. The requests of a round are made before it.
func Ratio(b *testing.B, address string, perRound, want int, request func(i int) []byte) {
	b.Helper()
	bare := BareFiber(b)
	hello := Request("GET", "/hello", "")
	const warmUp = 2000
	Load(b, bare, warmUp, 200, func(int) []byte { return hello })
	Load(b, address, min(warmUp, perRound), want, func(i int) []byte { return request(-1 - i) })
	var ratios, rates []float64
	sent, requests := 0, make([][]byte, perRound)
	for b.Loop() {
		for i := range requests {
			requests[i] = request(sent)
			sent++
		}
		floor := Load(b, bare, 20_000, 200, func(int) []byte { return hello })
		rate := Load(b, address, perRound, want, func(i int) []byte { return requests[i] })
		ratios, rates = append(ratios, rate/floor), append(rates, rate)
	}
	b.ReportMetric(Median(ratios), "ratio")
	b.ReportMetric(Median(rates), "req/s")
}

// BareFiber runs a minimal Fiber handler until the benchmark ends, and returns its address.
func BareFiber(b *testing.B) string {
	b.Helper()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/hello", func(c *fiber.Ctx) error { return c.SendString("hello") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = app.Listener(listener) }() // ends with the listener
	b.Cleanup(func() { _ = app.Shutdown() })
	return listener.Addr().String()
}

// Median returns the middle one of the values.
func Median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// Fill stores n records by SQL, in groups, and returns their ids.
func (s *Server) Fill(n int, insert func(ctx context.Context, tx *store.Tx, n int) ([]string, error)) []string {
	s.t.Helper()
	const group = 1000
	ids := make([]string, 0, n)
	for len(ids) < n {
		err := s.DB.InTx(s.t.Context(), func(tx *store.Tx) error {
			made, err := insert(s.t.Context(), tx, min(group, n-len(ids)))
			ids = append(ids, made...)
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return ids
}

// Request returns the bytes of a request of the client, for [Load].
func (c *Client) Request(method, path, body string) []byte {
	return Request(method, path, body, append([]string{"Authorization", "Bearer " + c.Token}, c.Headers...)...)
}

// RatioOfGets measures reads of single records with [Ratio].
func RatioOfGets(b *testing.B, c *Client, path string, ids []string) {
	b.Helper()
	requests := make([][]byte, len(ids))
	for i, id := range ids {
		requests[i] = c.Request("GET", path+id, "")
	}
	Ratio(b, c.address, 20_000, 200, func(i int) []byte { return requests[(i+len(requests))%len(requests)] })
}
