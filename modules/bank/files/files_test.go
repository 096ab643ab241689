package files_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"mime/multipart"
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// bank is a server with a customer who has a document.
type bank struct {
	*servertest.Server
	owner              *servertest.Client
	customer, document string
}

func newBank(t testing.TB, options ...servertest.Option) bank {
	t.Helper()
	b := bank{Server: servertest.Start(t, options...)}
	b.owner = b.User(access.Customer)
	b.customer = b.owner.Create("/v1/customers", map[string]any{"type": "individual", "first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"})
	b.document = b.addDocument(t, "X1234567")
	return b
}

// addDocument submits a passport and returns its id.
func (b bank) addDocument(t testing.TB, number string) string {
	t.Helper()
	b.owner.Do("PUT", "/v1/customers/"+b.customer+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": number, "country": "CH", "expiry_date": "2099-01-01"}}}).Expect(t, http.StatusOK)
	var kyc struct{ Documents []struct{ ID string } }
	b.owner.Do("GET", "/v1/customers/"+b.customer+"/kyc", nil).Expect(t, http.StatusOK).Into(t, &kyc)
	return kyc.Documents[len(kyc.Documents)-1].ID
}

func (b bank) evidence() string {
	return "/v1/customers/" + b.customer + "/kyc/documents/" + b.document + "/files"
}

// raw sends a file as the body.
func raw(c *servertest.Client, path, name string, content []byte) servertest.Response {
	return c.With("Content-Type", "application/octet-stream", "Content-Disposition", fmt.Sprintf("attachment; filename=%q", name)).Do("POST", path, content)
}

// form sends a file in a form.
func form(t testing.TB, c *servertest.Client, path, name string, content []byte) servertest.Response {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	part.Write(content) // it is a buffer
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return c.With("Content-Type", w.FormDataContentType()).Do("POST", path, body.Bytes())
}

// idOf returns the id of an uploaded file.
func idOf(t testing.TB, r servertest.Response) string {
	t.Helper()
	return r.Expect(t, http.StatusCreated).JSON(t)["id"].(string)
}

func TestUpload_KeepsTheFileAsItIs(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(2, 300, 200, 700<<10) // three chunks
	sum := sha256.Sum256(pdf)
	for name, send := range map[string]func() servertest.Response{
		"raw":  func() servertest.Response { return raw(b.owner, b.evidence(), "Pass.pdf", pdf) },
		"form": func() servertest.Response { return form(t, b.owner, b.evidence(), "Pass.pdf", pdf) },
	} {
		got := send().Expect(t, http.StatusCreated).JSON(t)
		if got["name"] != "Pass.pdf" || got["media_type"] != "application/pdf" || got["size"] != float64(len(pdf)) || got["status"] != "ready" ||
			got["sha256"] != hex.EncodeToString(sum[:]) || got["record_id"] != b.document || got["parent_id"] != b.customer || got["uploaded_by"] != b.owner.UserID {
			t.Errorf("%s: got %v", name, got)
		}
		content := b.owner.Do("GET", "/v1/files/"+got["id"].(string)+"/content", nil).Expect(t, http.StatusOK)
		if content.Body != string(pdf) {
			t.Errorf("%s: the content differs", name)
		}
		for header, want := range map[string]string{
			"Content-Type": "application/pdf", "Content-Disposition": `attachment; filename="Pass.pdf"; filename*=UTF-8''Pass.pdf`,
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, no-store",
			"Accept-Ranges": "bytes", "Repr-Digest": "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":", "Content-Length": fmt.Sprint(len(pdf)),
		} {
			if content.Header.Get(header) != want {
				t.Errorf("%s: %s is %q, want %q", name, header, content.Header.Get(header), want)
			}
		}
	}
	var list struct {
		Files   []struct{ ID string }
		HasMore bool `json:"has_more"`
	}
	b.owner.Do("GET", "/v1/customers/"+b.customer+"/kyc/files", nil).Expect(t, http.StatusOK).Into(t, &list)
	if len(list.Files) != 2 || list.HasMore {
		t.Errorf("the list has %+v", list)
	}
}

func TestContent_Ranges(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 600<<10)
	path := "/v1/files/" + idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdf)) + "/content"
	tag := b.owner.Do("HEAD", path, nil).Expect(t, http.StatusOK).Header.Get("ETag")
	size := len(pdf)
	for _, c := range []struct {
		header, condition string
		status            int
		first, last       int
	}{
		{"bytes=0-0", "", 206, 0, 0},
		{"bytes=262000-262300", "", 206, 262000, 262300}, // across two chunks
		{"bytes=-10", "", 206, size - 10, size - 1},
		{"bytes=600000-", tag, 206, 600000, size - 1},
		{"bytes=0-99999999999999999999", "", 206, 0, size - 1},
		{"bytes=5-9", `"other"`, 200, 0, size - 1},
		{"bytes=5-9", "Wed, 21 Oct 2015 07:28:00 GMT", 200, 0, size - 1},
		{"bytes=0-1,3-4", "", 200, 0, size - 1},
		{"bytes=0-," + string(bytes.Repeat([]byte("0-,"), 400)) + "0-", "", 200, 0, size - 1},
		{"bytes=9-5", "", 200, 0, size - 1},
		{"bytes=a-b", "", 200, 0, size - 1},
		{"lines=0-1", "", 200, 0, size - 1},
		{"bytes=99999999-", "", 416, 0, -1},
		{"bytes=-0", "", 416, 0, -1},
	} {
		headers := []string{"Range", c.header}
		if c.condition != "" {
			headers = append(headers, "If-Range", c.condition)
		}
		got := b.owner.With(headers...).Do("GET", path, nil).Expect(t, c.status)
		if c.status != http.StatusRequestedRangeNotSatisfiable && got.Body != string(pdf[c.first:c.last+1]) {
			t.Errorf("%.40s: got %d bytes, want %d to %d", c.header, len(got.Body), c.first, c.last)
		}
		want := map[int]string{206: fmt.Sprintf("bytes %d-%d/%d", c.first, c.last, size), 416: fmt.Sprintf("bytes */%d", size)}[c.status]
		if got.Header.Get("Content-Range") != want {
			t.Errorf("%.40s: Content-Range is %q, want %q", c.header, got.Header.Get("Content-Range"), want)
		}
	}
	b.owner.With("If-None-Match", tag).Do("GET", path, nil).Expect(t, http.StatusNotModified)
	if head := b.owner.Do("HEAD", path, nil); head.Header.Get("Content-Length") != fmt.Sprint(size) {
		t.Errorf("HEAD states %s bytes", head.Header.Get("Content-Length"))
	}
}
