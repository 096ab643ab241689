package qrbill

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

var update = flag.Bool("update", false, "compress the PDF engine of the library again")

// The embedded engine is the one of the library's version in go.mod. After an update of the library, run
// go test ./modules/invoices/qrbill -run TestEngine_IsThatOfTheLibrary -update
func TestEngine_IsThatOfTheLibrary(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/klippa-app/go-pdfium").Output()
	if err != nil {
		t.Fatal(err)
	}
	library, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "webassembly", "pdfium.wasm"))
	if err != nil {
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

func pack(t *testing.T, plain []byte) []byte {
	t.Helper()
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	return writer.EncodeAll(plain, nil)
}
