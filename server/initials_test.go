package server

import (
	"bufio"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// FuzzInitials checks that no header is missed that the engine has found.
func FuzzInitials(f *testing.F) {
	for _, lines := range []string{
		"", "if-match: \"1\"\r\n", "IF-NONE-MATCH: *\nHost: a\r\n", "Accept-Language:\r\naccept-language: de\r\n", "Connection: keep-alive,\r\n\tClose\r\n",
		"X-A: b\r\n content-encoding: gzip\r\n", "Host: a\r\n\r\nAccept: text/csv\r\n", "cookie: a=b\r\nContent-Encoding : gzip\r\n",
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var header fasthttp.RequestHeader
		if header.Read(bufio.NewReaderSize(strings.NewReader("GET / HTTP/1.1\r\n"+lines+"\r\n"), headerBytes)) != nil {
			return
		}
		found := initialsOf(header.RawHeaders())
		for _, name := range []string{fiber.HeaderAccept, fiber.HeaderAcceptLanguage, fiber.HeaderConnection, fiber.HeaderContentEncoding, fiber.HeaderIfMatch, fiber.HeaderIfNoneMatch} {
			if value := listHeader(&header, name); value != "" && !found.may(name) {
				t.Errorf("%q: the initials %b miss %s: %s", lines, found, name, value)
			}
		}
	})
}
