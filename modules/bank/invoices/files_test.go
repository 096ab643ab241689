package invoices_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/locales"
	"kontor/modules/bank/invoices"
	"kontor/modules/bank/invoices/qrbill"
	"kontor/store/testenv"
)

func TestReadFiles_WritesOneLinePerFile(t *testing.T) {
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	reader := qrbill.NewReader(qrbill.Config{Wait: testenv.Limit(), Limits: qrbill.Limits{Time: testenv.Limit()}})
	t.Cleanup(func() { reader.Close(context.Background()) })
	var out bytes.Buffer
	good := "../../../testdata/qr/files/png-100-b60-00.png"
	err = invoices.ReadFiles(context.Background(), reader, texts, strings.NewReader(""), &out, qrbill.Options{},
		good, "../../../testdata/qr/files/noqr-white.png", filepath.Join(t.TempDir(), "missing.pdf"))
	if !errors.Is(err, invoices.ErrFilesFailed) {
		t.Errorf("got %v, want ErrFilesFailed", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %d lines: %s", len(lines), out.String())
	}
	var answers [3]invoices.FileAnswer
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &answers[i]); err != nil {
			t.Fatal(err)
		}
	}
	if a := answers[0]; a.File != good || a.Error != nil || a.QRInfo == nil || a.QRInfo.IBAN != "CH9309000564140054668" {
		t.Errorf("first: got %s", lines[0])
	}
	if a := answers[1]; a.QRInfo != nil || a.Error == nil || a.Error.Reason != "no_qr_code" || a.Error.Message != "The file contains no readable QR code." {
		t.Errorf("second: got %s", lines[1])
	}
	if a := answers[2]; a.QRInfo != nil || a.Error == nil || a.Error.Reason != "unreadable" {
		t.Errorf("third: got %s", lines[2])
	}
	out.Reset()
	if err := invoices.ReadFiles(context.Background(), reader, texts, strings.NewReader(""), &out, qrbill.Options{}, good); err != nil {
		t.Errorf("one good file: %v", err)
	}
	picture, err := os.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	defer picture.Close()
	out.Reset()
	if err := invoices.ReadFiles(context.Background(), reader, texts, picture, &out, qrbill.Options{}, "-"); err != nil ||
		!strings.Contains(out.String(), "CH9309000564140054668") {
		t.Errorf("standard input: %v %s", err, out.String())
	}
}
