package commands

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kontor/server/settings"
)

// countingWriter counts writes. It fails while fail is set.
type countingWriter struct {
	mu     sync.Mutex
	data   bytes.Buffer
	writes int
	fail   error
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return 0, w.fail
	}
	w.writes++
	return w.data.Write(p)
}

// seen returns the number of writes and what they wrote.
func (w *countingWriter) seen() (writes int, data string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.data.String()
}

func TestLog_BuffersLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w countingWriter
		log, closeLog := openLog(settings.Log{Format: settings.LogAuto}, &w)
		for range 100 {
			log.Info("request")
		}
		if writes, _ := w.seen(); writes != 0 {
			t.Errorf("%d writes at once", writes)
		}
		time.Sleep(logDelay + time.Millisecond)
		synctest.Wait()
		writes, data := w.seen()
		if got := strings.Count(data, `"msg":"request"`); writes != 1 || got != 100 {
			t.Errorf("%d writes with %d lines of JSON, want 1 with 100", writes, got)
		}
		log.With("a", 1).WithGroup("g").Info("last")
		log.With("a", 1).WithGroup("g").Error("error")
		if writes, data := w.seen(); writes != 2 || !strings.Contains(data, "last") {
			t.Error("an error and the lines before it were not written at once")
		}
		log.Info("tail")
		err := closeLog()
		if _, data := w.seen(); err != nil || !strings.Contains(data, "tail") {
			t.Errorf("closing the log lost a line: %v", err)
		}
		log.Info("late")
		if _, data := w.seen(); !strings.Contains(data, "late") {
			t.Error("a line after closing is lost")
		}
	})
}

func TestLog_Concurrent(t *testing.T) {
	var w countingWriter
	log, closeLog := openLog(settings.Log{Format: settings.LogText}, &w)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				log.Info("line", "pad", strings.Repeat("x", 60))
			}
		})
	}
	group.Wait()
	if err := closeLog(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(w.data.String()), "\n")
	if len(lines) != 4000 {
		t.Errorf("%d lines, want 4000", len(lines))
	}
	for _, l := range lines {
		if !strings.HasPrefix(l, "time=") || !strings.HasSuffix(l, "x") {
			t.Fatalf("a torn line: %q", l)
		}
	}
}

func TestLog_RecoversFromAFailedWrite(t *testing.T) {
	w := countingWriter{fail: errors.New("disk full")}
	b := newLogBuffer(&w)
	for range 3 {
		_, _ = b.Write(make([]byte, logBufferBytes)) // the failure is the point
	}
	b.flush()
	w.fail = nil
	if _, err := b.Write([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil || !strings.HasSuffix(w.data.String(), "after\n") {
		t.Errorf("%v, %d bytes", err, w.data.Len())
	}
}

func TestLog_Level(t *testing.T) {
	var w countingWriter
	log, closeLog := openLog(settings.Log{Level: slog.LevelWarn, Format: settings.LogText}, &w)
	log.Info("quiet")
	log.Warn("loud")
	if err := closeLog(); err != nil {
		t.Fatal(err)
	}
	if got := w.data.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "level=WARN msg=loud") {
		t.Errorf("got %q", got)
	}
}
