package generate_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"kontor/server/client/generate"
	"kontor/server/servertest"
)

var update = flag.Bool("update", false, "write the generated files")

// TestClients_AreGenerated compares the generated files of both clients with the API document of the server.
func TestClients_AreGenerated(t *testing.T) {
	document := apiDocument(t)
	for directory, write := range map[string]func([]byte) (map[string][]byte, error){
		"..": generate.Go, "../../../web/client/src": generate.TypeScript,
	} {
		files, err := write(document)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			name = filepath.Join(directory, name)
			if *update {
				if err := os.WriteFile(name, want, 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs from what the API document says (%v): run make clients", name, err)
			}
		}
	}
}

// apiDocument returns the document of /openapi.json.
func apiDocument(t *testing.T) []byte {
	t.Helper()
	document, err := servertest.Start(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	data, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
