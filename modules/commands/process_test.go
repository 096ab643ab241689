package commands

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"kontor/server/apierr"
	"kontor/server/settings"
)

// countingWriter counts the writes, and fails while it is told to.
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

func TestLog_LinesAreCollected(t *testing.T) {
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
			t.Error("an error must be written at once, with what came before")
		}
		log.Info("tail")
		err := closeLog()
		if _, data := w.seen(); err != nil || !strings.Contains(data, "tail") {
			t.Errorf("the tail is lost at the end: %v", err)
		}
		log.Info("late")
		if _, data := w.seen(); !strings.Contains(data, "late") {
			t.Error("a line after the end is lost")
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

func TestMemoryLimit(t *testing.T) {
	const gib = 1 << 30
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := file("MemFree: 1 kB\nMemTotal:       4194304 kB\n")
	for name, c := range map[string]struct {
		root fstest.MapFS
		of   float64
	}{
		"nothing known":   {fstest.MapFS{}, 0},
		"machine":         {fstest.MapFS{"proc/meminfo": meminfo}, 4 * gib},
		"not readable":    {fstest.MapFS{"proc/meminfo": file("MemTotal: many kB\n")}, 0},
		"container":       {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, gib},
		"no limit":        {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, 4 * gib},
		"own group":       {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("1073741824\n"), "sys/fs/cgroup/a/memory.max": file("2147483648\n")}, gib},
		"group above":     {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("2147483648\n")}, 2 * gib},
		"version 1":       {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("9:cpu:/x\n8:memory:/a\nbroken\n"), "sys/fs/cgroup/memory/a/memory.limit_in_bytes": file("1073741824\n")}, gib},
		"version 1, none": {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 4 * gib},
	} {
		if got, want := memoryLimit(c.root), int64(c.of*memoryShare); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	fields := &apierr.Fields{}
	fields.Add("name", "invalid.required")
	for want, err := range map[string]error{
		"open x: no such file":                                errors.New("open x:\n  no such file"),
		"There is nothing at this address.":                   apierr.NotFound,
		"There is nothing at this address. (while reading x)": apierr.NotFound.Wrap(errors.New("while reading x")),
		"name:": fields.Err(),
	} {
		if got := explain(err); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.99", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-01-31T08:15:30Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := describe("1.2.3", info); !strings.HasPrefix(got, "1.2.3 (commit 0123456789ab with changes, 2026-01-31T08:15:30Z, go1.99 ") {
		t.Errorf("got %q", got)
	}
	if got := describe("", &debug.BuildInfo{GoVersion: "go1.99"}); !strings.HasPrefix(got, "development (go1.99 ") {
		t.Errorf("got %q", got)
	}
}

func TestReadPassword_FromStandardInput(t *testing.T) {
	for input, want := range map[string]string{
		"a secret\n": "a secret", "a secret\r\nmore\n": "a secret", " no newline ": " no newline ",
	} {
		if got, err := (Process{Stdin: strings.NewReader(input)}).readPassword(); err != nil || got != want {
			t.Errorf("%q: %q, %v", input, got, err)
		}
	}
	for _, input := range []string{"", "\n"} {
		if _, err := (Process{Stdin: strings.NewReader(input)}).readPassword(); err == nil {
			t.Errorf("%q was accepted", input)
		}
	}
}
