package files_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/testenv"
)

// dial opens a connection and sends the head of an upload.
func (b bank) dial(t testing.TB, headers ...string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", b.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/pdf\r\n", b.evidence(), b.owner.Token)
	for _, h := range headers {
		fmt.Fprintf(c, "%s\r\n", h)
	}
	fmt.Fprint(c, "\r\n")
	return c
}

func status(t testing.TB, c net.Conn) int {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(testenv.Limit())); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode
}

// awaitUpload waits until an upload has stored a chunk.
func (b bank) awaitUpload(t testing.TB) {
	t.Helper()
	b.awaitCount(t, "an upload to store a chunk", `files f JOIN file_chunks c ON c.file_id = f.id WHERE f.status = 'uploading'`, func(n int) bool { return n > 0 })
}

// awaitNoUpload waits until no upload has left anything.
func (b bank) awaitNoUpload(t testing.TB) {
	t.Helper()
	b.awaitCount(t, "the uploads to end", `files WHERE status IN ('uploading', 'discarded')`, func(n int) bool { return n == 0 })
}

func (b bank) awaitCount(t testing.TB, what, from string, holds func(n int) bool) {
	t.Helper()
	testenv.Wait(t, what, func() bool {
		var n int
		if err := b.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM `+from).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return holds(n)
	})
}

func TestUpload_BrokenTransfersLeaveNothing(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 900<<10)
	t.Run("the client goes away", func(t *testing.T) {
		c := b.dial(t, fmt.Sprintf("Content-Length: %d", len(pdf)))
		c.Write(pdf[:600<<10]) // the server sees it
		b.awaitUpload(t)
		c.Close()
		b.awaitNoUpload(t)
	})
	t.Run("a chunk breaks off", func(t *testing.T) {
		c := b.dial(t, "Transfer-Encoding: chunked")
		fmt.Fprintf(c, "%x\r\n%s\r\nXYZ", 600<<10, pdf[:600<<10])
		if got := status(t, c); got != http.StatusBadRequest {
			t.Errorf("got %d", got)
		}
	})
	t.Run("two lengths", func(t *testing.T) {
		c := b.dial(t, "Transfer-Encoding: chunked", "Content-Length: 5")
		if got := status(t, c); got != http.StatusBadRequest {
			t.Errorf("got %d", got)
		}
	})
	t.Run("a length beyond the limit", func(t *testing.T) {
		if got := status(t, b.dial(t, "Content-Length: 99999999999")); got != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d", got)
		}
	})
	t.Run("chunks beyond the limit", func(t *testing.T) {
		c := b.dial(t, "Transfer-Encoding: chunked")
		go func() { // the server answers before all of it is sent
			big := pdfOf(1, 300, 200, 11<<20)
			fmt.Fprintf(c, "%x\r\n%s\r\n0\r\n\r\n", len(big), big)
		}()
		if got := status(t, c); got != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d", got)
		}
	})
	t.Run("in one chunk of unknown length", func(t *testing.T) {
		c := b.dial(t, "Transfer-Encoding: chunked")
		fmt.Fprintf(c, "%x\r\n%s\r\n0\r\n\r\n", len(pdf), pdf)
		if got := status(t, c); got != http.StatusCreated {
			t.Errorf("got %d", got)
		}
	})
	t.Run("the record is deleted meanwhile", func(t *testing.T) {
		advisor := b.Admin()
		tasks := "/v1/customers/" + b.customer + "/tasks"
		task := tasks + "/" + advisor.Create(tasks, map[string]any{"title": "Sign", "category": "sign"})
		c, err := net.Dial("tcp", b.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST %s/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/pdf\r\nContent-Length: %d\r\n\r\n%s",
			task, advisor.Token, len(pdf), pdf[:600<<10])
		b.awaitUpload(t)
		advisor.Do("DELETE", task, nil).Expect(t, http.StatusOK)
		c.Write(pdf[600<<10:]) // the server may have answered
		if got := status(t, c); got != http.StatusNotFound {
			t.Errorf("got %d", got)
		}
		b.awaitNoUpload(t)
	})
	b.expectNothing(t)
}

func TestUpload_ConnectionsAreUsedAgain(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 300<<10)
	c := b.dial(t, fmt.Sprintf("Content-Length: %d", len(pdf)))
	fmt.Fprintf(c, "%sGET /v1/files/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", pdf, store.NewID(), b.owner.Token)
	reader := bufio.NewReader(c)
	for _, want := range []int{http.StatusCreated, http.StatusNotFound} {
		r, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != want {
			t.Errorf("got %d, %v, want %d", r.StatusCode, err, want)
		}
		r.Body.Close()
	}
}

func TestUpload_DigestsAndRepetitions(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 10)
	sum := sha256.Sum256(pdf)
	right, wrong := base64.StdEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, header := range []string{"Content-Digest", "Repr-Digest"} {
		raw(b.owner.With(header, "sha-512=:AAAA:, sha-256=:"+right+":"), b.evidence(), "a.pdf", pdf).Expect(t, http.StatusCreated)
		raw(b.owner.With(header, "sha-256=:"+wrong+":"), b.evidence(), "a.pdf", pdf).ExpectError(t, http.StatusBadRequest, "files.invalid_file")
		raw(b.owner.With(header, "sha-256=:!:"), b.evidence(), "a.pdf", pdf).ExpectError(t, http.StatusBadRequest, "files.invalid_file")
	}
	keyed := b.owner.With("Idempotency-Key", "one")
	first := idOf(t, raw(keyed, b.evidence(), "a.pdf", pdf))
	again := raw(keyed, b.evidence(), "a.pdf", pdf)
	if idOf(t, again) != first || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("a repetition has created another file")
	}
	raw(keyed, b.evidence(), "b.pdf", pdf).ExpectError(t, http.StatusUnprocessableEntity, "common.idempotency_mismatch")
	b.expectNothing(t)
}

func TestUpload_AtMostFiftyFilesOfARecord(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 10)
	for range 50 {
		raw(b.owner, b.evidence(), "a.pdf", pdf).Expect(t, http.StatusCreated)
	}
	raw(b.owner, b.evidence(), "a.pdf", pdf).ExpectError(t, http.StatusConflict, "files.too_many_files")
}

func TestPurge_RemovesWhatAKillHasLeft(t *testing.T) {
	b := newBank(t)
	left := func() {
		t.Helper()
		c := b.dial(t, "Content-Length: 900000")
		c.Write(pdfOf(1, 300, 200, 600<<10)) // the server sees it
		b.awaitUpload(t)
	}
	left()
	if err := b.Files.Purge(t.Context()); err != nil { // it is young: it may still run
		t.Fatal(err)
	}
	b.awaitUpload(t)
	b.Clock.Advance(3 * time.Hour)
	if err := b.Files.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expectNothing(t)
}
