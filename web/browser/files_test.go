package browser_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// fileField is the field behind the button to choose files.
const fileField = `.files input[type=file][multiple]`

// newDocument creates a customer with a passport and returns the path of the customer in the console.
func (s *testServer) newDocument(token string) string {
	s.t.Helper()
	customer := "/customers/" + s.newCustomer(token, "Luca", "Bernasconi")
	s.call(token, http.MethodPut, "/v1"+customer+"/kyc", map[string]any{"documents": []any{
		map[string]any{"type": "passport", "number": "X123", "expiry_date": "2099-01-01", "country": "CHE"}}})
	return customer
}

// chooseFile chooses a file in the field behind a selector.
func (v *visitor) chooseFile(selector, path string) {
	v.t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		v.t.Fatal(err)
	}
	v.until(`document.querySelector('` + selector + `')`)
	v.do(chromedp.SetUploadFiles(chromedp.CSS(selector), []string{full}, chromedp.NodeReady))
}

const (
	samplePicture = "../../testdata/qr/files/qr-only-b27-05.png"
	samplePDF     = "../../testdata/qr/files/dmg-badcurrency.pdf"
)

func TestFiles_EvidenceIsUploadedShownAndDeleted(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	v := signedInAt(t, s, desk, me, s.newDocument(s.token(me))+"/kyc")
	v.chooseFile(fileField, samplePicture)
	v.seeMessage("qr-only-b27-05.png has been uploaded.")
	v.until(`document.querySelector('.files li .thumbnail canvas')?.width > 0`)
	v.chooseFile(fileField, samplePDF)
	v.until(`document.querySelectorAll('.files li .thumbnail canvas').length === 2`)

	v.click(`.files li button[aria-label="Open dmg-badcurrency.pdf"]`)
	v.until(`document.querySelector('dialog[open] .sheet canvas')?.width > 300`)
	v.see("Download original")
	v.keys("\x1b")
	v.gone(`dialog[open]`)

	wrong := filepath.Join(t.TempDir(), "page.pdf")
	if err := os.WriteFile(wrong, []byte("<!DOCTYPE html><script>alert(1)</script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	v.expect("415")
	v.chooseFile(fileField, wrong)
	v.see("This type of file is not supported.")
	v.click(`.files li.failed button`)
	v.gone(`.files li.failed`)

	v.click(`.files li button[aria-label="Delete dmg-badcurrency.pdf"]`)
	v.click(confirmation)
	v.until(`document.querySelectorAll('.files li').length === 1`)
}

func TestFiles_SeveralAreDroppedAtOnce(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	v := signedInAt(t, s, desk, me, s.newDocument(s.token(me))+"/kyc")
	v.until(`document.querySelector('.file-drop')`)
	v.eval(`(async () => {
		const canvas = Object.assign(document.createElement('canvas'), { width: 40, height: 20 });
		const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
		const files = new DataTransfer();
		for (const name of ['a.png', 'b.png', 'c.png', 'd.png']) files.items.add(new File([blob], name, { type: 'image/png' }));
		const drop = document.querySelector('.file-drop');
		drop.dispatchEvent(new DragEvent('dragover', { bubbles: true, cancelable: true, dataTransfer: files }));
		drop.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: files }));
	})()`)
	v.until(`document.querySelectorAll('.files li .thumbnail canvas').length === 4`)
}

func TestFiles_OfAMessageReachTheOther(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Customer")
	chat := "/chats/" + s.call(s.token(me), http.MethodPost, "/v1/chats", map[string]any{"participants": []any{other.id}})["id"].(string)
	v := signedInAt(t, s, desk, me, chat)
	v.chooseFile(`.composer input[type=file]`, samplePicture)
	v.until(`document.querySelector('.waiting-files li') && !document.querySelector('.message')`) // It waits for Send.
	v.click(`.composer button[type=submit]`)
	v.until(`!document.querySelector('.waiting-files') && document.querySelector('.message .files li .thumbnail canvas')`)
	w := signedInAt(t, s, desk, other, chat)
	w.until(`document.querySelector('.message .files li .thumbnail canvas')`)
	w.click(`.message .files li button`)
	w.until(`document.querySelector('dialog[open] .sheet canvas')?.width > 100`)
	w.eval(`window.size = (({ width, height }) => [width, height])(document.querySelector('dialog[open] .sheet canvas'))`)
	w.keys("v") // turns
	w.until(`(({ width, height }) => width === size[1] && height === size[0])(document.querySelector('dialog[open] .sheet canvas'))`)
	w.keys("+")
	w.until(`document.querySelector('dialog[open] .sheet canvas')?.style.width === '150%'`)
	// The files were uploaded once: opening the chat again must not upload them again.
	v.goTo("/chats")
	v.gone(`.message`)
	v.goTo(chat)
	v.until(`document.querySelector('.message .files li .thumbnail canvas')`)
	v.until(`!document.querySelector('.message .files progress')`)
	if files := s.call(s.token(me), http.MethodGet, "/v1"+chat+"/files", nil)["files"].([]any); len(files) != 1 {
		t.Errorf("the chat has %d files, want 1", len(files))
	}
}

// A list of files that was read before an upload may arrive after the one that was read afterwards.
func TestFiles_ALateListDoesNotHideAnUpload(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	v := signedIn(t, p.testServer, desk, me)
	customer := p.newDocument(p.token(me))
	read, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodGet, "/v1"+customer+"/kyc/files", delayResponse(read, release))
	v.goTo(customer + "/kyc")
	happens(t, "the answer to be read", read)
	v.chooseFile(fileField, samplePicture)
	v.until(`document.querySelector('.files li .thumbnail canvas')?.width > 0`)
	v.deliver("/kyc/files", release)
	v.until(`document.querySelectorAll('.files li .thumbnail canvas').length === 1`)
}

func TestFiles_OfATask(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	token := s.token(me)
	customer := "/customers/" + s.newCustomer(token, "Luca", "Bernasconi")
	task := customer + "/tasks/" + s.call(token, http.MethodPost, "/v1"+customer+"/tasks", map[string]any{"title": "Sign", "category": "sign"})["id"].(string)
	v := signedInAt(t, s, look{width: 390, height: 844}, me, task)
	v.chooseFile(fileField, samplePDF)
	v.until(`document.querySelector('.files li .thumbnail canvas')`)
}
