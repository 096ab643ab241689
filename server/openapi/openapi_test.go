package openapi_test

import (
	"net/http"
	"os"
	"testing"

	"kontor/server/servertest"
)

func TestDump(t *testing.T) {
	s := servertest.Start(t)
	answer := s.Anonymous().Do("GET", "/openapi.json", nil)
	if answer.Status != http.StatusOK {
		t.Fatal(answer.Body)
	}
	os.WriteFile("/tmp/oa/openapi.json", []byte(answer.Body), 0o644)
}
