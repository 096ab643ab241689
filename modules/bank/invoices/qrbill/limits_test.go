package qrbill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/store/testenv"
)

func TestRead_LimitsBytesAndPages(t *testing.T) {
	reader := newReader(t, qrbill.Config{Limits: qrbill.Limits{Bytes: 20_000, Pages: 1}})
	if _, err := read(reader, make([]byte, 20_001), qrbill.Options{}); qrbill.ReasonOf(err) != qrbill.TooLarge {
		t.Errorf("large file: got %v", err)
	}
	pair := load(t, "pair-0.pdf")
	if _, err := read(reader, pair, qrbill.Options{}); qrbill.ReasonOf(err) != qrbill.TooComplex {
		t.Errorf("two pages: got %v", err)
	}
	if _, err := read(reader, pair, qrbill.Options{Page: 2}); err != nil {
		t.Errorf("one page of two: %v", err)
	}
}

func TestRead_StopsAtItsDeadline(t *testing.T) {
	reader := newReader(t, qrbill.Config{Limits: qrbill.Limits{Time: time.Nanosecond}})
	if _, err := read(reader, load(t, "noqr-white.png"), qrbill.Options{}); qrbill.ReasonOf(err) != qrbill.TooComplex {
		t.Errorf("no time: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	patient := newReader(t, qrbill.Config{})
	if _, err := patient.Read(ctx, load(t, "noqr-white.png"), qrbill.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// pdf returns a document with a page per content stream, and further objects.
func pdf(contents []string, further ...string) []byte {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", ""}
	var kids strings.Builder
	for _, content := range contents {
		page := len(objects) + 1
		fmt.Fprintf(&kids, "%d 0 R ", page)
		objects = append(objects,
			fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 500]/Contents %d 0 R/Resources<</XObject<</F %d 0 R>>>>>>", page+1, 3+2*len(contents)),
			fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(content), content))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids.String(), len(contents))
	var b bytes.Buffer
	var offsets []int
	b.WriteString("%PDF-1.4\n")
	for i, object := range append(objects, further...) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF", len(offsets)+1, start)
	return b.Bytes()
}

// nested returns a small PDF that takes hours to render: its forms call each other ten times each, ten levels deep.
func nested() []byte {
	const levels = 10
	var forms []string
	for level := range levels {
		resources, content := "", "0 0 1 1 re f"
		if level < levels-1 {
			resources = fmt.Sprintf("/Resources<</XObject<</F %d 0 R>>>>", 6+level)
			content = strings.Repeat("/F Do ", 10)
		}
		forms = append(forms, fmt.Sprintf("<</Type/XObject/Subtype/Form/BBox[0 0 500 500]%s/Length %d>>\nstream\n%s\nendstream", resources, len(content), content))
	}
	return pdf([]string{"/F Do"}, forms...)
}

// endless is a content stream with so many lines that the engine does not return from a loop without function calls.
var endless = strings.Repeat("0 0 m 500 500 l S ", 400_000)

// drawCode returns a content stream that draws a code.
func drawCode(t *testing.T, text string) string {
	t.Helper()
	const side = 400
	code, err := qrcode.NewQRCodeWriter().EncodeWithoutHint(text, gozxing.BarcodeFormat_QR_CODE, side, side)
	if err != nil {
		t.Fatal(err)
	}
	var content strings.Builder
	for y := range side {
		for x := range side {
			if code.Get(x, y) {
				fmt.Fprintf(&content, "%d %d 1.1 1.1 re ", 50+x, 450-y)
			}
		}
	}
	return content.String() + "f"
}

func TestRead_EndsALoopWithoutFunctionCalls(t *testing.T) {
	reader := newReader(t, qrbill.Config{Slots: 1, Wait: time.Hour, Limits: qrbill.Limits{Page: 500 * time.Millisecond}})
	for range 2 {
		if _, err := read(reader, pdf([]string{endless}), qrbill.Options{}); qrbill.ReasonOf(err) != qrbill.TooComplex {
			t.Errorf("got %v", err)
		}
		runtime.GC() // blocked for ever while the loop ran in this process: the Go scheduler cannot interrupt it
	}
	if _, err := read(reader, load(t, "pair-0.pdf"), qrbill.Options{}); err != nil {
		t.Errorf("the next document: %v", err)
	}
}

func TestRead_KeepsTheBillOfAnEarlierPage(t *testing.T) {
	reader := newReader(t, qrbill.Config{Wait: time.Hour, Limits: qrbill.Limits{Time: time.Hour, Page: 500 * time.Millisecond}})
	text := "SPC\n0200\n1\nCH5800791123000889012\nS\nMuster AG\n\n\n8000\nBern\nCH\n" + strings.Repeat("\n", 7) + "1.00\nCHF\n" +
		strings.Repeat("\n", 7) + "NON\n\n\nEPD"
	result, err := read(reader, pdf([]string{drawCode(t, text), endless}), qrbill.Options{})
	if err != nil || result.Page != 1 || result.Bill.IBAN != "CH5800791123000889012" {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestRead_SharesWorkersFairly(t *testing.T) {
	reader := newReader(t, qrbill.Config{Slots: 2, Wait: time.Hour})
	hold, held := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = reader.ReadFunc(t.Context(), func() ([]byte, error) { close(held); <-hold; return nil, nil }, qrbill.Options{Caller: "greedy"})
	})
	<-held
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reader.Read(ended, load(t, "url-b12.pdf"), qrbill.Options{Caller: "greedy"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the same caller got a second slot: %v", err)
	}
	if _, err := reader.Read(t.Context(), load(t, "pair-0.pdf"), qrbill.Options{Caller: "modest"}); err != nil {
		t.Errorf("another caller: %v", err)
	}
	close(hold)
	group.Wait()
}

func TestRead_EndsAnEndlessPage(t *testing.T) {
	reader := newReader(t, qrbill.Config{Limits: qrbill.Limits{Page: 500 * time.Millisecond}})
	_, err := read(reader, nested(), qrbill.Options{})
	if qrbill.ReasonOf(err) != qrbill.TooComplex {
		t.Errorf("got %v", err)
	}
	if _, err := read(reader, load(t, "url-b12.pdf"), qrbill.Options{}); qrbill.ReasonOf(err) != qrbill.NotSwissQRBill {
		t.Errorf("the next document: got %v", err)
	}
}

// The limit of the page is an hour, that of the file half a second.
func TestRead_EndsAnEndlessPageAtTheLimitOfTheFile(t *testing.T) {
	reader := newReader(t, qrbill.Config{Limits: qrbill.Limits{Page: time.Hour, Time: 500 * time.Millisecond}})
	var err error
	testenv.Wait(t, "the engine to be ready", func() bool {
		_, err = read(reader, nested(), qrbill.Options{})
		return !errors.Is(err, qrbill.ErrBusy)
	})
	if qrbill.ReasonOf(err) != qrbill.TooComplex {
		t.Errorf("got %v", err)
	}
}

func TestRead_RejectsFilesBeyondItsCapacity(t *testing.T) {
	reader := newReader(t, qrbill.Config{Slots: 1, Wait: time.Nanosecond})
	file := load(t, "hard-stain-b15-0.jpg")
	var mutex sync.Mutex
	var answered, busy int
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, err := read(reader, file, qrbill.Options{})
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err == nil:
				answered++
			case errors.Is(err, qrbill.ErrBusy):
				busy++
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if answered == 0 || answered+busy != 8 {
		t.Errorf("answered %d, busy %d", answered, busy)
	}
}
