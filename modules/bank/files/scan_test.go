package files_test

import (
	"bufio"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

// malware is what the signature of the test finds.
const malware = "KONTOR-STANDARD-ANTIVIRUS-TEST-FILE"

// startClamd runs the real scanner with one signature, and returns the path of its socket.
func startClamd(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.Full)
	path := testenv.Tool(t, "clamd")
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	for name, text := range map[string]string{
		"test.ndb":   "Kontor.Test:0:*:" + hex.EncodeToString([]byte(malware)) + "\n",
		"clamd.conf": "Foreground yes\nLocalSocket " + socket + "\nDatabaseDirectory " + dir + "\nStreamMaxLength 2M\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scanner := testenv.Background(t, exec.Command(path, "-c", filepath.Join(dir, "clamd.conf")))
	scanner.Line("Self checking") // it accepts connections
	scanner.IgnoreOutput()
	return socket
}

func scannedBy(address string) servertest.Option {
	return func(s *settings.Settings) { s.Files.Clamd = address }
}

func TestScan_WithTheRealScanner(t *testing.T) {
	b := newBank(t, scannedBy(startClamd(t)))
	advisor := b.User(access.Advisor)
	clean := idOf(t, raw(b.owner, b.evidence(), "clean.pdf", pdfOf(1, 300, 200, 600<<10)))
	infected := idOf(t, raw(b.owner, b.evidence(), "infected.pdf", append(pdfOf(1, 300, 200, 10), "\n% "+malware+"\n%%EOF\n"...)))
	for _, id := range []string{clean, infected} {
		file := "/v1/files/" + id
		if got := b.owner.Do("GET", file, nil).Expect(t, http.StatusOK).JSON(t)["status"]; got != "checking" {
			t.Errorf("the status is %v", got)
		}
		b.owner.Do("GET", file+"/content", nil).ExpectError(t, http.StatusConflict, "files.being_checked")
		b.owner.Do("GET", file+"/preview", nil).ExpectError(t, http.StatusConflict, "files.being_checked")
		for _, path := range []string{file, file + "/content", file + "/preview"} {
			advisor.Do("GET", path, nil).ExpectError(t, http.StatusNotFound, "files.file_not_found")
		}
	}
	list := "/v1/customers/" + b.customer + "/kyc/files"
	if len(listed(t, b.owner, list)) != 2 || len(listed(t, advisor, list)) != 0 {
		t.Error("files that are being checked are not for their uploader alone")
	}
	if err := b.Files.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	advisor.Do("GET", "/v1/files/"+clean+"/content", nil).Expect(t, http.StatusOK)
	b.owner.Do("GET", "/v1/files/"+infected+"/content", nil).ExpectError(t, http.StatusConflict, "files.infected")
	advisor.Do("GET", "/v1/files/"+infected, nil).Expect(t, http.StatusNotFound)
	if got := listed(t, advisor, list); len(got) != 1 || got[0] != clean {
		t.Errorf("the advisor sees %v", got)
	}
	b.expectNothing(t) // the content of the infected file is gone
	trail := b.Admin().Do("GET", "/v1/audit?search.rec_id="+infected, nil).Expect(t, http.StatusOK)
	if !strings.Contains(trail.Body, "files.receive") || !strings.Contains(trail.Body, "files.infected") {
		t.Errorf("the audit trail has %s", trail.Body)
	}
	b.owner.Do("DELETE", "/v1/files/"+infected, nil).Expect(t, http.StatusOK)
}

// fakeClamd answers every scan with a text. It counts the bytes of the files.
func fakeClamd(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			if answer == "" {
				c.Close()
				continue
			}
			reader := bufio.NewReader(c)
			for end := ""; !strings.HasSuffix(end, "\x00\x00\x00\x00"); {
				one, err := reader.ReadByte()
				if err != nil {
					break
				}
				end = end[max(0, len(end)-3):] + string([]byte{one})
			}
			io.WriteString(c, answer+"\x00") // the client sees it
			c.Close()
		}
	}()
	return listener.Addr().String()
}

func TestScan_FilesWaitForAScannerThatIsAway(t *testing.T) {
	for name, answer := range map[string]string{"it closes the connection": "", "it talks nonsense": "HTTP/1.1 400 Bad Request", "it is missing": "-"} {
		address := "127.0.0.1:1"
		if answer != "-" {
			address = fakeClamd(t, answer)
		}
		b := newBank(t, scannedBy(address))
		id := idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdfOf(1, 300, 200, 10)))
		if err := b.Files.Scan(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := b.Files.Purge(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.owner.Do("GET", "/v1/files/"+id+"/content", nil).ExpectError(t, http.StatusConflict, "files.being_checked")
		b.Files.Clamd = fakeClamd(t, "stream: OK") // it is there again
		if err := b.Files.Scan(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.owner.Do("GET", "/v1/files/"+id+"/content", nil).Expect(t, http.StatusOK)
	}
}

func TestScan_RefusedFilesDoNotBlockOthers(t *testing.T) {
	b := newBank(t, scannedBy(fakeClamd(t, "INSTREAM size limit exceeded. ERROR")))
	id := idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdfOf(1, 300, 200, 10)))
	if err := b.Files.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.owner.Do("GET", "/v1/files/"+id+"/content", nil).ExpectError(t, http.StatusConflict, "files.being_checked")
	b.Files.Clamd = fakeClamd(t, "stream: OK")
	if err := b.Files.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.owner.Do("GET", "/v1/files/"+id+"/content", nil).ExpectError(t, http.StatusConflict, "files.being_checked")
	b.Clock.Advance(11 * time.Minute)
	if err := b.Files.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.owner.Do("GET", "/v1/files/"+id+"/content", nil).Expect(t, http.StatusOK)
}

func TestScan_WithoutAScannerWaitingFilesAreOpened(t *testing.T) {
	b := newBank(t, scannedBy("127.0.0.1:1"))
	id := idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdfOf(1, 300, 200, 10)))
	b.Files.Clamd = "" // the operator has removed the setting
	if err := b.Files.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.owner.Do("GET", "/v1/files/"+id+"/content", nil).Expect(t, http.StatusOK)
}
