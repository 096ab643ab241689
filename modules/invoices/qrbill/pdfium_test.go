package qrbill

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "compress the PDF engine of the library again")

// The embedded engine is the one of the library's version in go.mod, without the functions that are not called. After an update of the
// library, or of engineCalls, run
//
//	go test ./modules/invoices/qrbill -run TestEngine_IsThatOfTheLibrary -update
//
// which needs the program zstd.
func TestEngine_IsThatOfTheLibrary(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/klippa-app/go-pdfium").Output()
	if err != nil {
		t.Fatal(err)
	}
	library, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "webassembly", "pdfium.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if library, err = prune(library); err != nil {
		t.Fatal(err)
	}
	if *update {
		packed := pack(t, library)
		if err := os.WriteFile("pdfium.wasm.zst", packed, 0o600); err != nil {
			t.Fatal(err)
		}
		packedEngine = packed
	}
	module, err := engineModule()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(module, library) {
		t.Error("pdfium.wasm.zst is not the library's engine; run this test with -update")
	}
}

// pack compresses with the program zstd at its highest level, which the Go library does not have: it saves 0.2 MB. The given
// size keeps the window, and so the memory of the reader, as small as the engine.
func pack(t *testing.T, plain []byte) []byte {
	t.Helper()
	zstd := exec.CommandContext(t.Context(), "zstd", "--ultra", "-22", "--stdout", fmt.Sprintf("--stream-size=%d", len(plain)))
	zstd.Stdin = bytes.NewReader(plain)
	packed, err := zstd.Output()
	if err != nil {
		t.Fatalf("run the program zstd (Debian's package zstd): %v", err)
	}
	return packed
}
