package compression_test

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kontor/server/compression"
)

func decode(t *testing.T, coding string, compressed []byte) string {
	t.Helper()
	var reader io.Reader
	var err error
	if coding == compression.Gzip {
		reader, err = gzip.NewReader(bytes.NewReader(compressed))
	} else {
		reader, err = zstd.NewReader(bytes.NewReader(compressed))
	}
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestEncode_IsReversibleAlsoConcurrently(t *testing.T) {
	var wait sync.WaitGroup
	for _, coding := range compression.Offered {
		for _, size := range []int{0, 1, 1000, 100_000, 3 << 20} {
			wait.Go(func() {
				body := strings.Repeat("Zürich, ", size/8)
				for range 3 {
					compression.Encode(coding, []byte(body), func(compressed []byte) {
						if decode(t, coding, compressed) != body {
							t.Errorf("%s of %d bytes differs", coding, size)
						}
						if size > 1000 && len(compressed) > size/10 {
							t.Errorf("%s of %d bytes has %d", coding, size, len(compressed))
						}
					})
				}
			})
		}
	}
	wait.Wait()
}

// BenchmarkEncode measures a list of 40 kB, as the console requests it.
func BenchmarkEncode(b *testing.B) {
	var body []byte
	for i := range 100 {
		id := strings.Repeat(string(rune('a'+i%26)), 8) + strings.Repeat(string(rune('0'+i%10)), 8)
		body = append(body, `{"id":"01a20364-`+id+`","type":"individual","first_name":"Anna","last_name":"Keller","email":"`+id+
			`@example.ch","phone":"+41446681800","address":{"street":"Seestrasse","city":"Zürich","postal_code":"8002","country":"CH"},"kyc_status":"pending"},`...)
	}
	for _, coding := range compression.Offered {
		b.Run(coding, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				compression.Encode(coding, body, func([]byte) {})
			}
		})
	}
}
