package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
)

// A client that does not read delays no other, and a revocation cuts the running write short.
func TestPoller_EndsAStreamWhoseClientDoesNotRead(t *testing.T) {
	for _, secure := range []bool{false, true} {
		p := newPolled(t)
		plainServer, plainClient := pair(t)
		if err := errors.Join(plainServer.SetWriteBuffer(4<<10), plainClient.SetReadBuffer(4<<10)); err != nil {
			t.Fatal(err)
		}
		server, client := secured(t, secure, plainServer, plainClient)
		goodServer, goodClient := pair(t)
		s := p.attach("a", server)
		p.attach("a", goodServer)
		large := make([]byte, maxPendingBytes) // more than the system keeps
		copy(large, "first\n")
		p.send("a", string(large))
		expect(t, goodClient, string(large))
		expect(t, client, "first\n")
		p.Revoke("a", func(other *Stream) bool { return other != s })
		<-p.ends
		if n, err := io.Copy(io.Discard, client); err == nil && !secure && n >= int64(len(large)) {
			t.Errorf("TLS %t: the client got everything after the revocation", secure)
		}
		p.send("a", "next\n")
		expect(t, goodClient, "next\n")
		// On a very busy machine it may have been dropped as slow before.
		if stats := p.Stats(); stats.Open != 1 || stats.Revoked+stats.Slow != 1 || p.watched() != 1 {
			t.Errorf("TLS %t: got %+v, %d watched", secure, stats, p.watched())
		}
	}
}

// A client that reads late gets all frames in order, also with TLS: a write that was interrupted could not be continued there.
func TestPoller_ContinuesWithAClientThatReadsLate(t *testing.T) {
	for _, secure := range []bool{false, true} {
		p := newPolled(t)
		plainServer, plainClient := pair(t)
		if err := errors.Join(plainServer.SetWriteBuffer(32<<10), plainClient.SetReadBuffer(32<<10)); err != nil {
			t.Fatal(err)
		}
		server, client := secured(t, secure, plainServer, plainClient)
		p.attach("late", server)
		goodServer, goodClient := pair(t)
		p.attach("good", goodServer)
		large := string(bytes.Repeat([]byte("0123456789abcdef"), 32<<10))
		p.send("late", large)
		for i := range 100 { // meanwhile others get theirs
			p.send("good", fmt.Sprintln(i))
			expect(t, goodClient, fmt.Sprintln(i))
		}
		p.send("late", "next\n")
		got := make([]byte, len(large)+len("next\n"))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != large+"next\n" {
			t.Errorf("TLS %t: the client did not get all frames: %v", secure, err)
		}
	}
}
