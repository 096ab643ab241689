package systemtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Write is a request to create a customer, with its response.
type Write struct {
	Key, Body    string
	Acknowledged string // the body of the response; empty without one
}

// WriteUntilDead creates customers over many connections until the server has ended, and returns all requests. It calls
// kill once, after enough requests were acknowledged, on the goroutine of the test.
func WriteUntilDead(tb testing.TB, p *Process, admin *Client, round, enough int, kill func()) []Write {
	tb.Helper()
	const writers = 32
	var all []Write
	var mu sync.Mutex
	var acknowledged atomic.Int64
	var wait sync.WaitGroup
	reached, ended := make(chan struct{}), make(chan struct{})
	for w := range writers {
		connection := p.Client(admin.Headers...)
		wait.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("r%d-w%d-n%d", round, w, n)
				sent := Write{Key: "key-" + name, Body: fmt.Sprintf(`{"first_name":"Anna <& Co>","last_name":%q,"email":"%s@example.ch","metadata":{"round":%d}}`, name, name, round)}
				got, err := connection.With("Idempotency-Key", sent.Key).Try("POST", "/v1/customers", sent.Body)
				if err == nil && got.Status == 503 {
					return // the server is shutting down
				}
				if err == nil && got.Status != 201 {
					tb.Errorf("got %d %s", got.Status, got.Body)
					return
				}
				if err == nil {
					sent.Acknowledged = got.Body
				}
				mu.Lock()
				all = append(all, sent)
				mu.Unlock()
				if err != nil {
					return
				}
				if int(acknowledged.Add(1)) == enough {
					close(reached)
				}
			}
		})
	}
	go func() {
		wait.Wait()
		close(ended)
	}()
	select {
	case <-reached:
		kill()
	case <-ended:
	}
	<-ended
	return all
}

// CheckWrite sends a request again, with its idempotency key, and checks the record and its audit entry.
func CheckWrite(t *testing.T, admin *Client, w Write) {
	t.Helper()
	again := admin.With("Idempotency-Key", w.Key).Do(t, "POST", "/v1/customers", w.Body, 201)
	if w.Acknowledged == "" {
		return
	}
	if again.Body != w.Acknowledged || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("the replay returned %s, the original request %s", again.Body, w.Acknowledged)
	}
	id := IDOf(t, w.Acknowledged)
	if got := admin.Do(t, "GET", "/v1/customers/"+id, "", 200); got.Body != w.Acknowledged {
		t.Fatalf("acknowledged %s, after the crash %s", w.Acknowledged, got.Body)
	}
	if n := admin.Total(t, "/v1/audit?search.action=customers.create&search.rec_id="+id); n != 1 {
		t.Fatalf("customer %s has %d audit entries", id, n)
	}
}

// Attack is a hostile request and the expected response. The tables of attacks are in the files hostile_*_test.go.
type Attack struct {
	Name         string
	By           *Client
	Method, Path string
	Body         string
	Status       int
	Code         string   // expected error code; empty means any body
	Contains     []string // texts that the body must contain
	Excludes     []string // texts that the body must not contain
}

// RunAttacks sends each request and compares the response with the expected one.
func RunAttacks(t *testing.T, attacks []Attack) {
	t.Helper()
	for _, a := range attacks {
		t.Run(a.Name, func(t *testing.T) {
			got, err := a.By.Try(a.Method, a.Path, a.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != a.Status {
				t.Fatalf("%s %.200s: got %d %.300s, want %d", a.Method, a.Path, got.Status, got.Body, a.Status)
			}
			if code := got.Code(); a.Code != "" && code != a.Code {
				t.Errorf("%s %.200s: got code %q, want %q", a.Method, a.Path, code, a.Code)
			}
			for _, text := range a.Contains {
				if !strings.Contains(got.Body, text) {
					t.Errorf("%s %.200s: %.300s does not contain %q", a.Method, a.Path, got.Body, text)
				}
			}
			for _, text := range a.Excludes {
				if strings.Contains(got.Body, text) {
					t.Errorf("%s %.200s: %.300s contains %q", a.Method, a.Path, got.Body, text)
				}
			}
		})
	}
}

// identity is a certificate in files, and the pool in which it is trusted.
type identity struct {
	Cert, Key string
	Pool      *x509.CertPool
}

// NewIdentity writes a certificate for bank.example that ends at a time.
func NewIdentity(t *testing.T, dir string, until time.Time) *identity {
	t.Helper()
	i := &identity{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()}
	i.Renew(t, until)
	return i
}

// Renew replaces the files by renaming, as tools for certificates do.
func (i *identity) Renew(t *testing.T, until time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"bank.example", "localhost"},
		NotBefore: until.AddDate(0, 0, -90), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{i.Cert: {Type: "CERTIFICATE", Bytes: der}, i.Key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	i.Pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Secure returns a client of a server that speaks TLS as bank.example.
func (p *Process) Secure(pool *x509.CertPool, headers ...string) *Client {
	c := p.Client(headers...)
	c.URL = strings.Replace(p.URL, "http://", "https://", 1)
	c.HTTP.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool, ServerName: "bank.example"}
	return c
}

// Address returns the address on which the server listens.
func (p *Process) Address() string { return strings.TrimPrefix(p.URL, "http://") }

// ResidentKiB returns the resident memory of a process.
func ResidentKiB(tb testing.TB, pid int) int { return procNumber(tb, pid, "status", "VmRSS:") }

// PeakKiB returns the largest resident memory that a process had.
func PeakKiB(tb testing.TB, pid int) int { return procNumber(tb, pid, "status", "VmHWM:") }

// procNumber returns the number after a label in a file of /proc/PID.
func procNumber(tb testing.TB, pid int, file, label string) int {
	tb.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		tb.Fatal(err) // only Linux has these files
	}
	n, err := strconv.Atoi(WordAfter(string(data), label))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// ProcessorTime returns the processor time of a process, exactly.
func ProcessorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Skip("needs the /proc of Linux")
	}
	var used time.Duration
	for _, name := range threads {
		var nanoseconds int64
		data, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		if _, err := fmt.Sscan(string(data), &nanoseconds); err != nil {
			b.Fatal(err)
		}
		used += time.Duration(nanoseconds)
	}
	return used
}

// Usage returns the memory of a process and its workers without the pages of the program, and their processor time,
// including that of ended children.
func Usage(pid int) (megabytes int, computed time.Duration) {
	for _, id := range append(Workers(pid), pid) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", id)) // it may have ended
		for line := range strings.Lines(string(status)) {
			var kilobytes int
			if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kilobytes); err == nil {
				megabytes += kilobytes >> 10
			}
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		const user, end = 11, 15 // user and system time of the process, and of ended children
		for i := user; i < end && end <= len(fields); i++ {
			ticks, _ := strconv.Atoi(fields[i]) // the kernel always writes numbers
			computed += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return megabytes, computed
}

// Workers returns the ids of the child processes of a process.
func Workers(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	var all []int
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(children)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
