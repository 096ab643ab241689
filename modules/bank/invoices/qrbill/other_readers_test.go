package qrbill

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"kontor/modules/bank/invoices/qrbill/symbol"
)

// sheet is a corpus file with the IBAN of its bill.
type sheet struct {
	file, category, iban string
	pages                []*symbol.Gray
}

// sheets renders all files of the corpus that contain a bill in shades of grey, PDFs at 200 dpi.
func sheets(b *testing.B) []sheet {
	b.Helper()
	dir := os.Getenv("KONTOR_QR_CORPUS")
	if dir == "" {
		dir = "../../../../testdata/qr"
	}
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		b.Fatal(err)
	}
	var manifest struct {
		Entries []struct {
			File, Category string
			IsRequest      bool `json:"is_request"`
			Expected       struct {
				Info *struct{ IBAN string } `json:"qr_info"`
				Or   any
			}
		}
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		b.Fatal(err)
	}
	limits := Config{}.withDefaults().Limits
	pdfs, err := newEngine(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var list []sheet
	for _, e := range manifest.Entries {
		if e.IsRequest || e.Expected.Info == nil || e.Category == "heic" {
			continue
		}
		file, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			b.Fatal(err)
		}
		kind, _ := sniff(file)
		src, err := open(file, kind, pdfs, limits)
		if err != nil {
			b.Fatalf("%s: %v", e.File, err)
		}
		s := sheet{file: e.File, category: e.Category, iban: e.Expected.Info.IBAN}
		for page := range src.pages() {
			gray, err := renderAt200DPI(src, page)
			if err != nil {
				b.Fatalf("%s: %v", e.File, err)
			}
			s.pages = append(s.pages, gray)
		}
		src.close()
		list = append(list, s)
	}
	return list
}

func renderAt200DPI(src source, page int) (*symbol.Gray, error) {
	if d, ok := src.(*document); ok {
		const dpi = 200
		return d.renderPage(page, dpi)
	}
	return src.page(page, false)
}

// BenchmarkPeer_Gozxing reports what the QR reader of gozxing reads with hybrid thresholds and TRY_HARDER. With
// KONTOR_QR_DUMP it also writes the pages for testdata/qr/peers.mjs, which runs other readers.
func BenchmarkPeer_Gozxing(b *testing.B) {
	all := sheets(b)
	if dir := os.Getenv("KONTOR_QR_DUMP"); dir != "" {
		dump(b, dir, all)
	}
	for b.Loop() {
		read, files := map[string]int{}, map[string]int{}
		for _, s := range all {
			files[s.category]++
			if slices.ContainsFunc(s.pages, func(g *symbol.Gray) bool { return plainRead(g, s.iban) }) {
				read[s.category]++
			}
		}
		var report strings.Builder
		for _, category := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&report, "\n%-26s %3d of %3d", category, read[category], files[category])
		}
		fmt.Println(report.String()) // the log of a benchmark is cut after ten lines
	}
}

// plainRead reads a picture with gozxing, as its documentation describes.
func plainRead(g *symbol.Gray, iban string) (ok bool) {
	defer func() { _ = recover() }() // a panic means not read
	bitmap, err := gozxing.NewBinaryBitmap(gozxing.NewHybridBinarizer(symbol.Luminance(g)))
	if err != nil {
		return false
	}
	hints := map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_TRY_HARDER: true}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, hints)
	return err == nil && strings.Contains(strings.ToUpper(result.GetText()), iban)
}

// dump writes the pages as PGM files, with a list of their IBANs.
func dump(b *testing.B, dir string, all []sheet) {
	b.Helper()
	type line struct {
		Category, IBAN string
		Pages          []string
	}
	var list []line
	for i, s := range all {
		l := line{Category: s.category, IBAN: s.iban}
		for page, g := range s.pages {
			name := fmt.Sprintf("%03d-%d.pgm", i, page+1)
			data := append(fmt.Appendf(nil, "P5\n%d %d\n255\n", g.W, g.H), g.Pix...)
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				b.Fatal(err)
			}
			l.Pages = append(l.Pages, name)
		}
		list = append(list, l)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pages.json"), raw, 0o600); err != nil {
		b.Fatal(err)
	}
}
