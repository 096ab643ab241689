package qrbill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/invoices/qrbill"
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

func TestRead_EndsWithItsContext(t *testing.T) {
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

// nested is a PDF whose forms call each other ten times each, ten levels deep: a
// small file that would keep a computer busy for hours.
func nested() []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	stream := func(dict, data string) {
		object(fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", dict, len(data), data))
	}
	b.WriteString("%PDF-1.4\n")
	object("<</Type/Catalog/Pages 2 0 R>>")
	object("<</Type/Pages/Kids[3 0 R]/Count 1>>")
	object("<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 500]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>")
	stream("", "/F Do")
	const levels = 10
	for level := range levels {
		resources, content := "", "0 0 1 1 re f"
		if level < levels-1 {
			resources = fmt.Sprintf("/Resources<</XObject<</F %d 0 R>>>>", 6+level)
			content = strings.Repeat("/F Do ", 10)
		}
		stream("/Type/XObject/Subtype/Form/BBox[0 0 500 500]"+resources, content)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF", len(offsets)+1, start)
	return b.Bytes()
}

func TestRead_EndsARunawayPage(t *testing.T) {
	reader := newReader(t, qrbill.Config{Limits: qrbill.Limits{Page: 500 * time.Millisecond}})
	start := time.Now()
	_, err := read(reader, nested(), qrbill.Options{})
	if qrbill.ReasonOf(err) != qrbill.TooComplex {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 20*time.Second { // compiling the engine included, with the race detector
		t.Errorf("took %s", took)
	}
	if _, err := read(reader, load(t, "url-b12.pdf"), qrbill.Options{}); qrbill.ReasonOf(err) != qrbill.NotSwissQRBill {
		t.Errorf("the next document: got %v", err)
	}
}

// TestRead_EndsARunawayPageWithItsTime has a page that may compute for an hour in a file that may take half a second.
func TestRead_EndsARunawayPageWithItsTime(t *testing.T) {
	reader := newReader(t, qrbill.Config{Limits: qrbill.Limits{Page: time.Hour, Time: 500 * time.Millisecond}})
	for range 50 { // until the engine is ready
		_, err := read(reader, nested(), qrbill.Options{})
		if errors.Is(err, qrbill.ErrBusy) {
			continue
		}
		if qrbill.ReasonOf(err) != qrbill.TooComplex {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Error("the engine does not start")
}

func TestRead_ServesManyAndTurnsSurplusAway(t *testing.T) {
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
