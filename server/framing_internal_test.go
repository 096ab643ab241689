package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/valyala/fasthttp"
)

// good are requests that follow each other on one connection.
var good = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"\r\nGET /later HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2*maxKeptLine) + "\r\n\r\n",
	"GET / HTTP/1.0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: \t7\r\n\r\na\nb\r\n\nc",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-encoding:chunked\r\n\r\n5\r\na\nb\nc\r\n00A\r\n0123\n\n\n\n89\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n1;a;b=c\r\nx\r\n0;last\r\nX-One: 1\r\nX-Two: 2\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}

// bad are requests that end at different places for different recipients. The engine may see them up to |.
var bad = map[string]string{
	"first line with a bare line feed":    "GET / HTTP/1.1|\nHost: a\r\n\r\n",
	"an empty one":                        "|\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"header with a bare line feed":        "GET / HTTP/1.1\r\nHost: a|\nX: 1\r\n\r\n",
	"end of the head with one":            "GET / HTTP/1.1\r\nHost: a\r\n|\n",
	"continued header":                    "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r|\n\r\n",
	"continued with a tab":                "GET / HTTP/1.1\r\n\tHost: a\r|\n\r\n",
	"continued with spaces only":          "GET / HTTP/1.1\r\nHost: a\r\n \r|\n\r\n",
	"length and chunks":                   "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r|\n",
	"chunks and length":                   "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r|\n",
	"two lengths":                         "POST / HTTP/1.1\r\nContent-Length: 4\r\ncontent-length: 4\r|\n",
	"two codings":                         "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r|\n",
	"another coding":                      "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r|\n",
	"a list of codings":                   "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r|\n",
	"chunked with a space":                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked \r|\n",
	"no length":                           "POST / HTTP/1.1\r\nContent-Length: \r|\n",
	"a sign":                              "POST / HTTP/1.1\r\nContent-Length: +4\r|\n",
	"a list of lengths":                   "POST / HTTP/1.1\r\nContent-Length: 4, 4\r|\n",
	"an endless length":                   "POST / HTTP/1.1\r\nContent-Length: 9223372036854775808\r|\n",
	"an empty extension":                  chunked + "5;\r|\nhello\r\n0\r\n\r\n",
	"an empty one behind another":         chunked + "5;a;\r|\nhello\r\n0\r\n\r\n",
	"an empty one of the last chunk":      chunked + "0;\r|\n\r\n",
	"an extension without a name":         chunked + "5;=a\r|\nhello\r\n0\r\n\r\n",
	"one without a value":                 chunked + "5;a=\r|\nhello\r\n0\r\n\r\n",
	"a quoted value":                      chunked + "5;a=\"b\"\r|\nhello\r\n0\r\n\r\n",
	"an extension behind a space":         chunked + "5 ;a\r|\nhello\r\n0\r\n\r\n",
	"an extension with a carriage return": chunked + "5;a\rb\r|\nhello\r\n0\r\n\r\n",
	"a long extension":                    chunked + "5;" + strings.Repeat("a", 1<<10) + "\r|\nhello\r\n0\r\n\r\n",
	"a size with a space":                 chunked + "5 \r|\nhello\r\n0\r\n\r\n",
	"a size with a sign":                  chunked + "+5\r|\nhello\r\n0\r\n\r\n",
	"a size with a prefix":                chunked + "0x5\r|\nhello\r\n0\r\n\r\n",
	"no size":                             chunked + "\r|\nhello\r\n0\r\n\r\n",
	"an endless size":                     chunked + "10000000000000000\r|\n",
	"a size with a bare line feed":        chunked + "5|\nhello\r\n0\r\n\r\n",
	"a chunk longer than its size":        chunked + "5\r\nhello!\r|\n0\r\n\r\n",
	"a chunk that ends with a line feed":  chunked + "5\r\nhello|\n0\r\n\r\n",
	"a trailer with a bare line feed":     chunked + "0\r\nX: 1|\n\r\n",
	"a continued trailer":                 chunked + "0\r\nX: 1\r\n 2\r|\n\r\n",
}

const chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestFraming_FollowsRequests(t *testing.T) {
	all := strings.Join(append(good, good...), "")
	for cut := range all {
		if got, err := readFramed(all[:cut], all[cut:]); got != all || err != nil {
			t.Fatalf("cut after %q: got %d of %d bytes and %v", all[:cut], len(got), len(all), err)
		}
	}
	if got, err := io.ReadAll(framedReader{&framing{}, iotest.OneByteReader(strings.NewReader(all))}); string(got) != all || err != nil {
		t.Errorf("byte by byte: got %d of %d bytes and %v", len(got), len(all), err)
	}
}

func TestFraming_StopsBeforeAnAmbiguousLine(t *testing.T) {
	before := good[3] + good[5]
	for name, text := range bad {
		seen, rest, _ := strings.Cut(text, "|")
		seen, rest = before+seen, rest+good[0]
		for cut := range seen + rest {
			all := seen + rest
			if got, err := readFramed(all[:cut], all[cut:]); got != seen || !errors.Is(err, errFraming) {
				t.Errorf("%s, cut after %d bytes: got %q and %v", name, cut, strings.TrimPrefix(got, before), err)
				break
			}
		}
	}
}

// FuzzFraming compares any bytes in one piece with the same bytes one by one, and the ends of requests with those that the engine finds.
func FuzzFraming(f *testing.F) {
	for _, text := range good {
		f.Add([]byte(text))
	}
	for _, text := range bad {
		f.Add([]byte(strings.Replace(text, "|", "", 1)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, err := io.ReadAll(framedReader{&framing{}, bytes.NewReader(text)})
		single, errSingle := io.ReadAll(framedReader{&framing{}, iotest.OneByteReader(bytes.NewReader(text))})
		if !bytes.Equal(whole, single) || !errors.Is(errSingle, err) || !bytes.HasPrefix(text, whole) || (err == nil) != (len(whole) == len(text)) {
			t.Errorf("%q: in one piece %q and %v, byte by byte %q and %v", text, whole, err, single, errSingle)
		}
		checkEngine(t, text)
	})
}

func TestFraming_EndsRequestsWhereTheEngineDoes(t *testing.T) {
	if all := strings.Join(good, ""); checkEngine(t, []byte(all)) != len(good) {
		t.Errorf("the engine does not accept all requests")
	}
}

// checkEngine reads requests as the engine does. It returns their number.
func checkEngine(t *testing.T, text []byte) (requests int) {
	t.Helper()
	framing := &framing{}
	from := bufio.NewReaderSize(framedReader{framing, iotest.OneByteReader(bytes.NewReader(text))}, headerBytes) // never reads ahead
	for ; ; requests++ {
		var request fasthttp.Request
		if request.Header.Read(from) != nil || request.ContinueReadBodyStream(from, 1<<20, false) != nil {
			return requests
		}
		if body := request.BodyStream(); body != nil {
			if n, err := io.Copy(io.Discard, body); err != nil || request.Header.ContentLength() > int(n) {
				return requests
			}
		}
		if framing.part != partFirstLine || framing.left > 0 || len(framing.kept) > 0 {
			t.Fatalf("%q: request %d ends elsewhere for the engine: %+v", text, requests, framing)
		}
	}
}

// readFramed reads pieces of a connection.
func readFramed(pieces ...string) (string, error) {
	var readers []io.Reader
	for _, piece := range pieces {
		readers = append(readers, strings.NewReader(piece))
	}
	got, err := io.ReadAll(framedReader{&framing{}, io.MultiReader(readers...)})
	return string(got), err
}

type framedReader struct {
	framing *framing
	from    io.Reader
}

func (r framedReader) Read(b []byte) (int, error) { return r.framing.read(r.from, b) }
