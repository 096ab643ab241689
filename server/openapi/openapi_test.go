package openapi_test

import (
	"os"
	"testing"

	"kontor/server/servertest"
)

func TestDump(t *testing.T) {
	s := servertest.Start(t)
	d, err := s.Document()
	if err != nil {
		t.Error(err)
	}
	data, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/oa/openapi.json", data, 0o644)
}
