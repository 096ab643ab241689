package commands_test

import (
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"kontor/modules/commands"
)

// The lines of a bill: creditor, no final creditor, amount, debtor left open, no reference.
const payload = "SPC\n0200\n1\nCH9300762011623852957\nS\nMuster AG\nBahnhofstrasse\n1\n8001\nZürich\nCH\n" +
	"\n\n\n\n\n\n\n199.95\nCHF\n\n\n\n\n\n\n\nNON\n\nInvoice 1\nEPD"

func newBill(t *testing.T) (file string) {
	t.Helper()
	code, err := qrcode.NewQRCodeWriter().Encode(payload, gozxing.BarcodeFormat_QR_CODE, 600, 600,
		map[gozxing.EncodeHintType]any{gozxing.EncodeHintType_CHARACTER_SET: "UTF-8"})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "bill.png")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, code); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestQRBill(t *testing.T) {
	file := newBill(t)
	o := run(nil, "", "qrbill", file)
	expectSuccess(t, o, `"CH9300762011623852957"`)
	var answer struct {
		QRInfo struct{ Amount float64 } `json:"qr_info"`
	}
	if err := json.Unmarshal([]byte(o.stdout), &answer); err != nil || answer.QRInfo.Amount != 199.95 {
		t.Errorf("%v: %s", err, o.stdout)
	}

	other := filepath.Join(t.TempDir(), "other.txt")
	if err := os.WriteFile(other, []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := run(nil, "", "qrbill", other, file)
	if both.code != 1 || strings.Count(both.stdout, "\n") != 2 || strings.Count(both.stderr, "\n") != 1 || !strings.Contains(both.stdout, "unsupported_file") {
		t.Errorf("exit %d, stdout %s, stderr %s", both.code, both.stdout, both.stderr)
	}
	expectFailure(t, run(nil, "", "qrbill"), "<files>")
}

// A user who cannot have a cache, such as on a system that can only be read, has none: each process keeps its own.
func TestEngineCache_NeedsADirectory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/dev/null")
	if got := commands.EngineCache(); got != "" {
		t.Errorf("got %q for a cache that cannot be created", got)
	}
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	got := commands.EngineCache()
	if info, err := os.Stat(got); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("got %q, %v", got, err)
	}
}
