package files_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image/jpeg"
	"net/http"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/storetest"
)

// archive is the end of a ZIP archive without files.
const archive = "PK\x05\x06" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func TestUpload_RejectsOtherAndAmbiguousFiles(t *testing.T) {
	b := newBank(t)
	pdf, picture, drawing := pdfOf(1, 300, 200, 10), jpegOf(t, 40, 20), pngOf(t, 40, 20)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	comment := func(text string) []byte { // a JPEG with a comment
		head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xfe}, uint16(len(text)+2))
		return join(head, []byte(text), picture[2:])
	}
	for name, c := range map[string]struct {
		content []byte
		status  int
		code    string
		reason  string
	}{
		"nothing":                {nil, 400, "common.invalid_input", "required"},
		"a GIF named PNG":        {[]byte("GIF89a" + strings.Repeat("x", 100)), 415, "files.invalid_file_type", ""},
		"a page":                 {[]byte("<!DOCTYPE html><script>alert(1)</script>"), 415, "files.invalid_file_type", ""},
		"a drawing in XML":       {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), 415, "files.invalid_file_type", ""},
		"an archive":             {[]byte("PK\x03\x04" + archive), 415, "files.invalid_file_type", ""},
		"a program":              {[]byte("MZ" + strings.Repeat("\x00", 100)), 415, "files.invalid_file_type", ""},
		"PDF after bytes":        {join([]byte("\n\n"), pdf), 415, "files.invalid_file_type", ""},
		"PDF and archive":        {join(pdf, []byte(archive)), 400, "files.invalid_file", "more than"},
		"PDF in a comment":       {comment("%PDF-1.4 1 0 obj"), 400, "files.invalid_file", "more than"},
		"JPEG and PDF":           {join(picture, pdf), 400, "files.invalid_file", "more than"},
		"JPEG and archive":       {join(picture, []byte(archive)), 400, "files.invalid_file", "more than"},
		"JPEG and archive, SEFT": {join(picture, []byte(archive[:20]), []byte("\x04\x00SEFT")), 400, "files.invalid_file", "more than"},
		"JPEG and page":          {join(picture, []byte("<html><script>")), 400, "files.invalid_file", "more than"},
		"page in a comment":      {comment("<script>alert(1)</script>"), 400, "files.invalid_file", "more than"},
		"PNG and page":           {join(drawing, []byte("<html><script>")), 400, "files.invalid_file", "more than"},
		"PNG and PNG":            {join(drawing, drawing), 400, "files.invalid_file", "more than"},
		"half a PNG":             {drawing[:len(drawing)/2], 400, "files.invalid_file", "damaged"},
		"half a JPEG":            {picture[:len(picture)/2], 400, "files.invalid_file", "damaged"},
		"half a PDF":             {pdf[:len(pdf)/2], 400, "files.invalid_file", "damaged"},
		"start of a PNG":         {drawing[:8], 400, "files.invalid_file", "damaged"},
		"start of a JPEG":        {picture[:3], 400, "files.invalid_file", "damaged"},
		"a bomb":                 {pngHeader(50_000, 50_000), 400, "files.invalid_file", "too many pixels"},
		"the largest bomb":       {pngHeader(1<<31-1, 1<<31-1), 400, "files.invalid_file", "too many pixels"},
		"no pixels":              {pngHeader(0, 10), 400, "files.invalid_file", "damaged"},
		"more than the limit":    {pdfOf(1, 300, 200, 10<<20), 413, "common.payload_too_large", ""},
	} {
		for how, got := range map[string]servertest.Response{"raw": raw(b.owner, b.evidence(), "x.png", c.content), "form": form(t, b.owner, b.evidence(), "x.png", c.content)} {
			if body := got.JSON(t); got.Status != c.status || body["code"] != c.code || !strings.Contains(fmt.Sprint(body["details"]), c.reason) {
				t.Errorf("%s, %s: got %d %s, want %d %s (%s)", name, how, got.Status, got.Body, c.status, c.code, c.reason)
			}
		}
	}
	b.expectNothing(t)
}

// expectNothing checks that no upload has left a row, except those of the files that exist.
func (b bank) expectNothing(t testing.TB) {
	t.Helper()
	for _, statement := range []string{
		`SELECT COUNT(*) FROM files WHERE status IN ('uploading', 'discarded')`,
		`SELECT COUNT(*) FROM file_chunks WHERE file_id NOT IN (SELECT id FROM files WHERE status IN ('ready', 'checking'))`,
	} {
		var n int
		if err := b.DB.QueryRow(t.Context(), statement).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d rows, %v", statement, n, err)
		}
	}
}

func TestUpload_AcceptsWhatCamerasAppend(t *testing.T) {
	b := newBank(t)
	picture := jpegOf(t, 40, 20)
	for name, rest := range map[string]string{
		"padding": "\x00\x00\n", "a second picture": string(picture), "a film": "\x00\x00\x00\x18ftypmp42", "a trailer": "\x00\x00data of SamsungSEFT",
	} {
		if got := raw(b.owner, b.evidence(), "photo.jpg", append(bytes.Clone(picture), rest...)); got.Status != http.StatusCreated {
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		}
	}
}

func TestUpload_CleansNames(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 10)
	for sent, want := range map[string]string{
		"../../etc/passwd.pdf":              "passwd.pdf",
		`C:\Users\ada\Pass.pdf`:             "Pass.pdf",
		"Pass\u202efdp.exe":                 "Passfdp.exe.pdf",
		"a\u200bb\u00ad.pdf":                "ab.pdf",
		"":                                  "file.pdf",
		"...":                               "file.pdf",
		"con.pdf":                           "file-con.pdf",
		"LPT1.PDF":                          "file-LPT1.pdf",
		"Zürich <1>|?.PDF":                  "Zürich _1___.pdf",
		"Zu\u0308rich.pdf":                  "Zürich.pdf",
		strings.Repeat("ä", 500) + ".pdf":   strings.Repeat("ä", 98) + ".pdf",
		"page.html":                         "page.html.pdf",
		"  many   blanks \u00a0 .pdf":       "many blanks.pdf",
		"shell;rm -rf $(x)`y`.pdf":          "shell;rm -rf $(x)`y`.pdf",
		"\u65e5\u672c\u8a9e\U0001f600.jpeg": "\u65e5\u672c\u8a9e\U0001f600.jpeg.pdf",
	} {
		header := "attachment; filename*=UTF-8''" + percent(sent)
		got := b.owner.With("Content-Type", "application/pdf", "Content-Disposition", header).Do("POST", b.evidence(), pdf).Expect(t, http.StatusCreated).JSON(t)
		if got["name"] != want {
			t.Errorf("%q: got %q, want %q", sent, got["name"], want)
		}
		content := b.owner.Do("GET", "/v1/files/"+got["id"].(string)+"/content", nil).Header.Get("Content-Disposition")
		if strings.ContainsAny(content, "\r\n\x00") || !strings.HasPrefix(content, "attachment; filename=\"") || !strings.HasSuffix(content, "filename*=UTF-8''"+percent(want)) {
			t.Errorf("%q: Content-Disposition is %q", sent, content)
		}
		b.owner.Do("DELETE", "/v1/files/"+got["id"].(string), nil).Expect(t, http.StatusOK)
	}
	long := form(t, b.owner, b.evidence(), strings.Repeat("x", 3000)+".pdf", pdf).Expect(t, http.StatusCreated).JSON(t)["name"].(string)
	if len(long) > 200 {
		t.Errorf("a name of %d bytes was kept", len(long))
	}
}

func percent(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func TestPreview_HasNoMetadataAndStandsUpright(t *testing.T) {
	b := newBank(t)
	original := photo(t, 400, 200)
	file := "/v1/files/" + idOf(t, raw(b.owner, b.evidence(), "photo.jpg", original))
	if got := b.owner.Do("GET", file+"/content", nil); got.Body != string(original) || !strings.Contains(got.Body, gpsMark) {
		t.Error("the original does not keep its metadata")
	}
	preview := b.owner.Do("GET", file+"/preview?width=100", nil).Expect(t, http.StatusOK)
	img, err := jpeg.Decode(strings.NewReader(preview.Body))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(preview.Body, "GPS") || strings.Contains(preview.Body, "Exif") {
		t.Error("the preview has metadata")
	}
	if size := img.Bounds().Size(); size.X != 100 || size.Y != 200 {
		t.Errorf("the preview of a picture on its side has %v", size)
	}
	if r, _, bl, _ := img.At(50, 10).RGBA(); r < bl { // the left half is the upper one now
		t.Error("the preview is upside down")
	}
	if preview.Header.Get("X-Page-Count") != "1" || preview.Header.Get("Cache-Control") != "private, no-store" || preview.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("the preview has the headers %v", preview.Header)
	}
	b.owner.With("If-None-Match", preview.Header.Get("ETag")).Do("GET", file+"/preview?width=100", nil).Expect(t, http.StatusNotModified)
	b.owner.Do("GET", file+"/preview?page=2", nil).ExpectError(t, http.StatusNotFound, "files.page_not_found")
	b.owner.Do("GET", file+"/preview?page=0", nil).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
	b.owner.Do("GET", file+"/preview?width=100000", nil).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
}

func TestPreview_OfDocuments(t *testing.T) {
	b := newBank(t)
	file := "/v1/files/" + idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdfOf(3, 300, 200, 10)))
	preview := b.owner.Do("GET", file+"/preview?page=3&width=300", nil).Expect(t, http.StatusOK)
	img, err := jpeg.Decode(strings.NewReader(preview.Body))
	if err != nil || img.Bounds().Dx() != 300 || preview.Header.Get("X-Page-Count") != "3" {
		t.Fatalf("%v, %s pages", err, preview.Header.Get("X-Page-Count"))
	}
	if r, g, _, _ := img.At(20, 180).RGBA(); r < 0xc000 || g > 0x4000 {
		t.Error("the red square is missing: the preview has no colours")
	}
	for name, hostile := range map[string][]byte{
		"a huge page":  pdfOf(1, 2_000_000, 2_000_000, 10),
		"no structure": []byte("%PDF-1.4\nnothing\n%%EOF\n"),
		"deep nesting": []byte("%PDF-1.4\n1 0 obj\n" + strings.Repeat("[", 200_000) + "\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n"),
		"a false PNG":  append(pngHeader(5000, 5000), nil...),
	} {
		id := idOf(t, raw(b.owner, b.evidence(), "x.pdf", hostile))
		if got := b.owner.Do("GET", "/v1/files/"+id+"/preview", nil); got.Status != http.StatusConflict || got.JSON(t)["code"] != "files.no_preview" {
			t.Errorf("%s: got %d %.100s", name, got.Status, got.Body)
		}
		b.owner.Do("GET", "/v1/files/"+id+"/content", nil).Expect(t, http.StatusOK)
	}
}

func TestUpload_ParallelUploadsDoNotExceedTheQuota(t *testing.T) {
	b := newBank(t, func(s *settings.Settings) { s.Files.Quota = 1 << 20 })
	pdf := pdfOf(1, 300, 200, 300<<10) // three of these fit
	var wait sync.WaitGroup
	statuses := make([]int, 12)
	for i := range statuses {
		wait.Go(func() {
			c := b.owner.With("Content-Type", "application/pdf")
			if got, err := c.Try("POST", b.evidence(), pdf); err == nil {
				statuses[i] = got.Status
			}
		})
	}
	wait.Wait()
	counts := map[int]int{}
	for _, s := range statuses {
		counts[s]++
	}
	if counts[201] != 3 || counts[409] != 9 {
		t.Errorf("got %v, want 3 files and 9 errors", counts)
	}
	b.expectNothing(t)
	refused := raw(b.owner, b.evidence(), "a.pdf", pdf)
	refused.ExpectError(t, http.StatusConflict, "common.quota_exceeded")
	var list struct{ Files []struct{ ID string } }
	b.owner.Do("GET", "/v1/customers/"+b.customer+"/kyc/files", nil).Into(t, &list)
	b.owner.Do("DELETE", "/v1/files/"+list.Files[0].ID, nil).Expect(t, http.StatusOK)
	raw(b.owner, b.evidence(), "a.pdf", pdf).Expect(t, http.StatusCreated) // a deletion gives its bytes back
}

func TestFiles_ManipulatedChunksAreFound(t *testing.T) {
	if storetest.SQLiteOnly(t, "it changes rows behind the server") {
		return
	}
	pdf := pdfOf(1, 300, 200, 600<<10)
	for name, statement := range map[string]string{
		"changed":  `UPDATE file_chunks SET content = zeroblob(LENGTH(content)) WHERE file_id = $1 AND number = 1`,
		"cut off":  `DELETE FROM file_chunks WHERE file_id = $1 AND number = 2`,
		"swapped":  `UPDATE file_chunks SET number = CASE number WHEN 0 THEN 1 WHEN 1 THEN 0 ELSE number END WHERE file_id = $1`,
		"foreign":  `UPDATE file_chunks SET content = (SELECT content FROM file_chunks o WHERE o.file_id <> $1 AND o.number = 1) WHERE file_id = $1 AND number = 1`,
		"repeated": `UPDATE file_chunks SET content = (SELECT content FROM file_chunks o WHERE o.file_id = $1 AND o.number = 0) WHERE file_id = $1 AND number = 1`,
	} {
		b := newBank(t)
		b.SkipRecordCheck()
		id := idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdf))
		idOf(t, raw(b.owner, b.evidence(), "b.pdf", pdf))
		if name == "swapped" {
			servertest.Exec(t, b.DB, `UPDATE file_chunks SET number = number + 10 WHERE file_id = $1 AND number < 2`, id)
			servertest.Exec(t, b.DB, `UPDATE file_chunks SET number = 11 - number WHERE file_id = $1 AND number >= 10`, id)
		} else {
			servertest.Exec(t, b.DB, statement, id)
		}
		got, err := b.owner.Try("GET", "/v1/files/"+id+"/content", nil)
		if err == nil && got.Status == http.StatusOK && len(got.Body) == len(pdf) {
			t.Errorf("%s: the content was served", name)
		}
	}
}

func TestFiles_ForeignCallersAreRejected(t *testing.T) {
	b := newBank(t)
	file := "/v1/files/" + idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdfOf(1, 300, 200, 10)))
	foreign, advisor := b.User(access.Customer), b.User(access.Advisor)
	list := "/v1/customers/" + b.customer + "/kyc/files"
	for _, path := range []string{file, file + "/content", file + "/preview", list} {
		foreign.Do("GET", path, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
		b.Anonymous().Do("GET", path, nil).Expect(t, http.StatusUnauthorized)
		advisor.Do("GET", path, nil).Expect(t, http.StatusOK)
	}
	foreign.Do("DELETE", file, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	raw(foreign, b.evidence(), "a.pdf", pdfOf(1, 300, 200, 10)).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	other := newCustomer(foreign)
	wrong := "/v1/customers/" + other + "/kyc/documents/" + b.document + "/files" // the document of another customer
	raw(foreign, wrong, "a.pdf", pdfOf(1, 300, 200, 10)).ExpectError(t, http.StatusNotFound, "files.record_not_found")
	foreign.Do("GET", "/v1/files/"+store.NewID(), nil).ExpectError(t, http.StatusNotFound, "files.file_not_found")
	b.expectNothing(t)
}

func newCustomer(c *servertest.Client) string {
	return c.Create("/v1/customers", map[string]any{"type": "individual", "first_name": "Bea", "last_name": "Muster", "email": "bea@example.ch"})
}
