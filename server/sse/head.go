package sse

import (
	"net/textproto"

	"github.com/valyala/fasthttp"
)

// ownHeaders are the headers that a stream sets itself; those of the response are ignored.
var ownHeaders = map[string]bool{
	"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Transfer-Encoding": true, "Cache-Control": true,
	"Connection": true, "X-Accel-Buffering": true, "Vary": true, "Etag": true,
}

// Head returns the head of the response, with the headers that the response has already, such as those of CORS. The body has no
// length: it ends with the connection.
func Head(response *fasthttp.ResponseHeader) []byte {
	b := []byte("HTTP/1.1 200 OK\r\n" +
		"Content-Type: text/event-stream\r\n" +
		"Cache-Control: no-cache, no-transform\r\n" +
		"Connection: keep-alive\r\n" +
		"X-Accel-Buffering: no\r\n" +
		"Vary: Origin\r\n")
	for name, value := range response.All() {
		if canonical := textproto.CanonicalMIMEHeaderKey(string(name)); !ownHeaders[canonical] {
			b = appendHeader(b, string(name), string(value))
		}
	}
	return append(b, "\r\n"...)
}

func appendHeader(b []byte, name, value string) []byte {
	b = append(append(b, clean(name)...), ": "...)
	return append(append(b, clean(value)...), "\r\n"...)
}
