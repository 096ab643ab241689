package sandbox

import (
	"bytes"
	"testing"
)

// FuzzReadFrame reads arbitrary bytes, as a compromised worker might send.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("a\x00\x00\x00\x02ok"))
	f.Add([]byte("p\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		const limit = 100
		kind, payload, err := readFrame(bytes.NewReader(sent), limit)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if len(payload) > limit || writeFrame(&again, kind, payload) != nil || !bytes.HasPrefix(sent, again.Bytes()) {
			t.Fatalf("% x was read as %q % x", sent, kind, payload)
		}
	})
}
