package qrbill_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/store/testenv"
)

func load(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("../../../../testdata/qr/files", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMain(m *testing.M) {
	// Compile the engine before the tests unless the cache has it: that is slow with the race detector.
	first := qrbill.NewReader(qrbill.Config{CacheDir: testenv.EngineCache(), Limits: qrbill.Limits{Time: time.Hour}})
	_, _ = first.Read(context.Background(), []byte("%PDF-1.4"), qrbill.Options{}) // the file is damaged, but starts the engine
	first.Close(context.Background())
	os.Exit(m.Run())
}

func newReader(t testing.TB, config qrbill.Config) *qrbill.Reader {
	t.Helper()
	if config.CacheDir == "" {
		config.CacheDir = testenv.EngineCache()
	}
	if config.Limits.Time == 0 {
		config.Limits.Time = testenv.Limit()
	}
	if config.Wait == 0 {
		config.Wait = testenv.Limit()
	}
	if config.Now == nil {
		config.Now = func() time.Time { return time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC) }
	}
	r := qrbill.NewReader(config)
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

func read(r *qrbill.Reader, file []byte, options qrbill.Options) (*qrbill.Result, error) {
	return r.Read(context.Background(), file, options)
}

func TestRead_ReportsTheReason(t *testing.T) {
	reader := newReader(t, qrbill.Config{Limits: qrbill.Limits{Page: 500 * time.Millisecond}})
	bill := load(t, "pair-0.pdf")
	for _, tc := range []struct {
		name    string
		file    []byte
		options qrbill.Options
		want    qrbill.Reason
		format  string
	}{
		{"nothing", nil, qrbill.Options{}, qrbill.UnsupportedFile, ""},
		{"noise", load(t, "random.bin"), qrbill.Options{}, qrbill.UnsupportedFile, ""},
		{"text", load(t, "text.txt"), qrbill.Options{}, qrbill.UnsupportedFile, ""},
		{"HTML named PDF", load(t, "html.pdf"), qrbill.Options{}, qrbill.UnsupportedFile, "HTML"},
		{"SVG", load(t, "svg.svg"), qrbill.Options{}, qrbill.UnsupportedFile, "SVG"},
		{"document", load(t, "zip.docx"), qrbill.Options{}, qrbill.UnsupportedFile, "ZIP"},
		{"HEIC", load(t, "heic-b33-00.heic"), qrbill.Options{}, qrbill.UnsupportedFile, "HEIC"},
		{"AVIF", []byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00"), qrbill.Options{}, qrbill.UnsupportedFile, "AVIF"},
		{"XML", []byte("<?xml version=\"1.0\"?><Invoice/>"), qrbill.Options{}, qrbill.UnsupportedFile, "XML"},
		{"PDF that is none", load(t, "random-pdfhead.pdf"), qrbill.Options{}, qrbill.DamagedFile, ""},
		{"cut PNG", load(t, "trunc-50.png"), qrbill.Options{}, qrbill.DamagedFile, ""},
		{"cut JPEG", load(t, "trunc-30.jpg"), qrbill.Options{}, qrbill.DamagedFile, ""},
		{"PNG with a false size", load(t, "bomb-png-lie.png"), qrbill.Options{}, qrbill.TooLarge, ""},
		{"PNG of 225 megapixels", load(t, "bomb-png-gray.png"), qrbill.Options{}, qrbill.TooLarge, ""},
		{"PNG of 900 megapixels", load(t, "bomb-png-1bit.png"), qrbill.Options{}, qrbill.TooLarge, ""},
		{"thousands of pages", load(t, "bomb-pages.pdf"), qrbill.Options{}, qrbill.TooComplex, ""},
		{"endless page", load(t, "bomb-mediabox.pdf"), qrbill.Options{}, qrbill.TooLarge, ""},
		{"huge content", load(t, "bomb-content.pdf"), qrbill.Options{}, qrbill.TooComplex, ""},
		{"huge image in a PDF", load(t, "bomb-image.pdf"), qrbill.Options{}, qrbill.TooComplex, ""},
		{"password", load(t, "encrypted-user.pdf"), qrbill.Options{}, qrbill.EncryptedFile, ""},
		{"no code", load(t, "noqr-white.png"), qrbill.Options{}, qrbill.NoQRCode, ""},
		{"only a link", load(t, "url-b12.pdf"), qrbill.Options{}, qrbill.NotSwissQRBill, ""},
		{"EPC code", load(t, "dmg-epc.pdf"), qrbill.Options{}, qrbill.NotSwissQRBill, ""},
		{"version 3", load(t, "dmg-badversion.pdf"), qrbill.Options{}, qrbill.InvalidPayload, ""},
		{"page 99", bill, qrbill.Options{Page: 99}, qrbill.PageOutOfRange, ""},
		{"page -1", bill, qrbill.Options{Page: -1}, qrbill.PageOutOfRange, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := read(reader, tc.file, tc.options)
			var problem *qrbill.Error
			if !errors.As(err, &problem) || problem.Reason != tc.want || problem.Format != tc.format {
				t.Errorf("got %v, want %s (%s)", err, tc.want, tc.format)
			}
		})
	}
}

func TestRead_StartsTheEngineForTheFirstPDF(t *testing.T) {
	reader := newReader(t, qrbill.Config{})
	if _, err := read(reader, load(t, "png-150-b42-01.png"), qrbill.Options{}); err != nil {
		t.Fatal(err)
	}
	if reader.EngineStarted() {
		t.Error("the PDF engine was started without a PDF")
	}
	if _, err := read(reader, load(t, "pair-0.pdf"), qrbill.Options{}); err != nil {
		t.Fatal(err)
	}
	if !reader.EngineStarted() {
		t.Error("EngineStarted returned false after a PDF")
	}
}

// The worker compiles the engine, which needs far more memory than a file may use.
func TestRead_WithoutACacheDirectory(t *testing.T) {
	testenv.Need(t, testenv.Full) // it compiles the PDF engine
	reader := qrbill.NewReader(qrbill.Config{Wait: time.Hour, Limits: qrbill.Limits{Time: time.Hour}})
	t.Cleanup(func() { reader.Close(context.Background()) })
	if _, err := read(reader, load(t, "pair-0.pdf"), qrbill.Options{}); err != nil {
		t.Error(err)
	}
}

func TestRead_ReturnsOtherBills(t *testing.T) {
	reader := newReader(t, qrbill.Config{})
	result, err := read(reader, load(t, "pair-0.pdf"), qrbill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Page != 1 || result.Bill.IBAN != "CH9130272435117744051" {
		t.Errorf("got %s on page %d", result.Bill.IBAN, result.Page)
	}
	if len(result.Others) != 1 || result.Others[0].Page != 2 || result.Others[0].Bill.IBAN != "CH2830456328301526105" {
		t.Errorf("further bills: got %+v", result.Others)
	}
	second, err := read(reader, load(t, "pair-0.pdf"), qrbill.Options{Page: 2})
	if err != nil || second.Page != 2 || second.Bill.IBAN != "CH2830456328301526105" || len(second.Others) != 0 {
		t.Errorf("page 2: got %+v, %v", second, err)
	}
}

func TestRead_StrictReportsAllViolations(t *testing.T) {
	reader := newReader(t, qrbill.Config{})
	_, err := read(reader, load(t, "dmg-badiban.pdf"), qrbill.Options{Strict: true})
	var problem *qrbill.Error
	if !errors.As(err, &problem) || problem.Reason != qrbill.InvalidPayload {
		t.Fatalf("got %v", err)
	}
	want := qrbill.Finding{Element: "iban", Rule: qrbill.RuleChecksum, Value: "CH0130272435117744051"}
	if len(problem.Findings) != 1 || problem.Findings[0] != want {
		t.Errorf("got %v, want %v", problem.Findings, want)
	}
}

func TestRead_ReturnsTheSameToConcurrentCallers(t *testing.T) {
	// The limits allow for a busy machine and the race detector.
	reader := newReader(t, qrbill.Config{Slots: 3, Wait: time.Hour, Limits: qrbill.Limits{Time: time.Hour, Page: time.Minute}})
	files := [][]byte{load(t, "pair-0.pdf"), load(t, "hard-stain-b15-0.jpg"), load(t, "url-b12.pdf"), load(t, "encrypted-user.pdf")}
	want := make([]string, len(files))
	describe := func(i int) string {
		result, err := read(reader, files[i], qrbill.Options{})
		if err != nil {
			return string(qrbill.ReasonOf(err))
		}
		return result.Bill.IBAN
	}
	for i := range files {
		want[i] = describe(i)
	}
	var group sync.WaitGroup
	for n := range 12 {
		group.Go(func() {
			if got := describe(n % len(files)); got != want[n%len(files)] {
				t.Errorf("file %d: got %s, want %s", n%len(files), got, want[n%len(files)])
			}
		})
	}
	group.Wait()
}

func TestRead_ShowsTransparentPixelsAsWhite(t *testing.T) {
	opaque, err := png.Decode(bytes.NewReader(load(t, "transparent-png-b66-00.png")))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, alpha := opaque.At(0, 0).RGBA(); alpha != 0 {
		t.Fatal("the sample has no transparent ground")
	}
	if _, err := read(newReader(t, qrbill.Config{}), load(t, "transparent-png-b66-00.png"), qrbill.Options{}); err != nil {
		t.Error(err)
	}
}

func TestBinary_BuildsWithoutCgo(t *testing.T) {
	command := exec.Command(testenv.Tool(t, "go"), "list", "-deps", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}", ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if needs := strings.Fields(string(out)); len(needs) > 0 {
		t.Errorf("these packages need cgo: %v", needs)
	}
}

// FuzzRead reads arbitrary bytes after the signatures of image files. The result must be a bill or a reason.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 16, 16)), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	for _, head := range []string{"\x89PNG\r\n\x1a\n", "GIF89a", "BM", "RIFF\x00\x00\x00\x00WEBPVP8 ", "II*\x00\x08\x00\x00\x00", "MM\x00*\x00\x00\x00\x08", "\x00\x00\x00\x18ftypheic", "<svg"} {
		f.Add([]byte(head + "0123456789"))
	}
	reader := newReader(f, qrbill.Config{Limits: qrbill.Limits{Pixels: 100_000}})
	f.Fuzz(func(t *testing.T, file []byte) {
		if bytes.Contains(file, []byte("%PDF-")) {
			return // the sandbox confines the PDF engine; this test is about the image decoders
		}
		result, err := read(reader, file, qrbill.Options{})
		if (result == nil) == (err == nil) {
			t.Fatalf("got %v and %v", result, err)
		}
		if err != nil && qrbill.ReasonOf(err) == "" {
			t.Fatalf("no reason: %v", err)
		}
	})
}
