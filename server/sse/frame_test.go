package sse_test

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"kontor/server/sse"
)

func TestEvent_WritesFramesOfTheStandard(t *testing.T) {
	for _, c := range []struct{ id, event, data, want string }{
		{"", "open", `{"a":1}`, "event: open\ndata: {\"a\":1}\n\n"},
		{"7", "message", "x", "id: 7\nevent: message\ndata: x\n\n"},
		{"7", "message", "a\nb\r\nc", "id: 7\nevent: message\ndata: a\ndata: b\ndata: c\n\n"},
		{"7\nevent: evil", "mes\r\nsage\x00", "", "id: 7event: evil\nevent: message\ndata: \n\n"},
	} {
		if got := string(sse.Event(c.id, c.event, []byte(c.data))); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("id", "event", "data")
	f.Add("\n\n", "\r", "\n\nevent: x\n\n")
	f.Fuzz(func(t *testing.T, id, event, data string) {
		frame := string(sse.Event(id, event, []byte(data)))
		body, ended := strings.CutSuffix(frame, "\n\n")
		if !ended || strings.Contains(body, "\n\n") || strings.ContainsRune(body, '\r') {
			t.Fatalf("%q is not one frame", frame)
		}
		events := 0
		for line := range strings.SplitSeq(body, "\n") {
			name, _, _ := strings.Cut(line, ": ")
			if name == "event" {
				events++
			} else if name != "data" && name != "id" {
				t.Fatalf("%q has a line %q", frame, line)
			}
		}
		if events != 1 {
			t.Fatalf("%q has %d events", frame, events)
		}
	})
}

func TestHead_KeepsHeadersOfTheResponse(t *testing.T) {
	var header fasthttp.ResponseHeader
	header.Set("X-Request-ID", "r1")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json")
	header.SetContentLength(7)
	header.Set("Access-Control-Allow-Origin", "https://a.example")
	head := string(sse.Head(&header))
	for _, want := range []string{"HTTP/1.1 200 OK\r\n", "\r\nContent-Type: text/event-stream\r\n", "\r\nX-Request-Id: r1\r\n",
		"\r\nAccess-Control-Allow-Origin: https://a.example\r\n", "\r\nCache-Control: no-cache, no-transform\r\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("%q lacks %q", head, want)
		}
	}
	for _, unwanted := range []string{"no-store", "json", "Content-Length"} {
		if strings.Contains(head, unwanted) {
			t.Errorf("%q has %q", head, unwanted)
		}
	}
	if !strings.HasSuffix(head, "\r\n\r\n") {
		t.Errorf("%q has no end", head)
	}
}
