package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var docsAddress = regexp.MustCompile(`(?:src|href)="(/docs/[^"]+)"`)

func TestDocs_ServeThePageAndItsFiles(t *testing.T) {
	app := newApp(t, newSite(t))
	_, slash := get(t, app, "/docs/")
	answer, page := get(t, app, "/docs")
	if slash != page {
		t.Error("/docs/ is not the page at /docs")
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("got %d %s", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	found := docsAddress.FindAllStringSubmatch(page, -1)
	if len(found) < 5 {
		t.Errorf("the page names %d files, want its scripts and style sheets: %s", len(found), page)
	}
	for _, address := range found {
		answer, body := get(t, app, address[1], "Accept-Encoding", "gzip")
		if answer.StatusCode != http.StatusOK || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d, cached %q", address[1], answer.StatusCode, answer.Header.Get("Cache-Control"))
		}
		plain, whole := get(t, app, address[1])
		if plain.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: compressed without Accept-Encoding", address[1])
		}
		if answer.Header.Get("Content-Encoding") != "gzip" {
			continue // The file is too small to compress.
		}
		reader, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if unpacked, err := io.ReadAll(reader); err != nil || string(unpacked) != whole {
			t.Errorf("%s: the compressed file differs (%v)", address[1], err)
		}
	}
}

func TestDocs_RejectInlineAndForeignResources(t *testing.T) {
	app := newApp(t, newSite(t))
	answer, page := get(t, app, "/docs")
	policy := answer.Header.Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	for _, inline := range []string{"<script>", "<style", " style=", " onclick", "http://", "https://"} {
		if strings.Contains(page, inline) {
			t.Errorf("the page has %s", inline)
		}
	}
}

func TestDocs_DoNotAnswerOtherAddresses(t *testing.T) {
	app := newApp(t, newSite(t))
	for _, path := range []string{"/docs/000000000000/docs.js", "/docs/index.html", "/docsx"} {
		if answer, _ := get(t, app, path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, answer.StatusCode)
		}
	}
}
