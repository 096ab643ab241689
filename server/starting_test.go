package server_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"kontor/server"
)

func TestStarting_AnswersUntilTheServerDoes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := server.NewStarting(listener, nil, slog.New(slog.DiscardHandler))
	get := func(path, language string) (*http.Response, map[string]any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Language", language)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		var decoded map[string]any
		if err := json.Unmarshal(body, &decoded); err != nil {
			t.Fatalf("%s: %s", path, body)
		}
		return answer, decoded
	}
	s.Begin()
	if _, body := get("/readyz", "en"); body["progress"] != nil {
		t.Errorf("a progress that is not known: %v", body)
	}
	s.Report(250, 1000)
	if answer, body := get("/healthz", "en"); answer.StatusCode != 200 || body["overall_status"] != "healthy" {
		t.Errorf("/healthz: %d %v", answer.StatusCode, body)
	}
	answer, body := get("/readyz", "de")
	progress, _ := body["progress"].(map[string]any)
	if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || body["overall_status"] != "unhealthy" ||
		progress["done"] != 250.0 || progress["total"] != 1000.0 || progress["percent"] != 25.0 || !strings.Contains(body["message"].(string), "Dienst") {
		t.Errorf("/readyz: %d %v %v", answer.StatusCode, answer.Header, body)
	}
	for language, word := range map[string]string{"en": "starting", "de": "startet", "fr": "démarre", "it": "avviando"} {
		answer, body := get("/v1/customers", language)
		if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || answer.Header.Get("Content-Language") != language ||
			body["code"] != "common.starting" || body["retryable"] != true || !strings.Contains(body["message"].(string), word) {
			t.Errorf("%s: %d %v %v", language, answer.StatusCode, answer.Header, body)
		}
	}
	s.Report(2000, 1000) // more than there were
	if _, body := get("/readyz", "en"); body["progress"].(map[string]any)["percent"] != 100.0 {
		t.Errorf("more than all: %v", body)
	}
	waiting, err := net.Dial("tcp", listener.Addr().String()) // a client that sends nothing does not hold the start up
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	s.Stop()
	s.Stop()
	next := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"next":true}`) })}
	go next.Serve(listener)
	defer next.Close()
	if _, body := get("/readyz", "en"); body["next"] != true {
		t.Errorf("after the start: %v", body)
	}
	s.Report(1000, 1000)
	if _, body := get("/readyz", "en"); body["next"] != true {
		t.Errorf("after a late report: %v", body)
	}
}

func TestStarting_NeedNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := server.NewStarting(listener, nil, slog.New(slog.DiscardHandler))
	s.Stop()
	s.Begin()
	s.Stop()
}
