package commands

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"kontor/server/settings"
)

const (
	logBufferBytes = 64 << 10
	logDelay       = 200 * time.Millisecond // longest time that a line stays in the buffer
)

// logBuffer collects lines, so that a line for each request does not cost a system call for each request. It is safe for
// concurrent use. A line reaches the writer after logDelay at the latest, and at once when the buffer is full.
type logBuffer struct {
	mu     sync.Mutex
	out    io.Writer
	w      *bufio.Writer
	timer  *time.Timer
	armed  bool
	closed bool
}

func newLogBuffer(w io.Writer) *logBuffer {
	b := &logBuffer{out: w, w: bufio.NewWriterSize(w, logBufferBytes)}
	b.timer = time.AfterFunc(logDelay, b.flush)
	b.timer.Stop() // nothing to write: nothing wakes up
	return b
}

// Write implements io.Writer.
func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.w.Write(line)
	if err != nil || b.closed {
		return n, b.write()
	}
	if !b.armed {
		b.armed = true
		b.timer.Reset(logDelay)
	}
	return n, nil
}

func (b *logBuffer) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = false
	_ = b.write() // nobody is left to tell that the log cannot be written
}

// write empties the buffer, also when that fails: bufio keeps an error for ever, but a disk that was full may have room
// again.
func (b *logBuffer) write() error {
	err := b.w.Flush()
	if err != nil {
		b.w.Reset(b.out)
	}
	return err
}

// Close writes what is left. Lines that come later are written at once.
func (b *logBuffer) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer.Stop()
	b.closed = true
	return b.write()
}

// urgentHandler writes errors at once, with all that came before: a process that is about to crash may not see the next
// tick.
type urgentHandler struct {
	slog.Handler
	flush func()
}

// Handle implements slog.Handler.
func (h urgentHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelError {
		h.flush()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h urgentHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return urgentHandler{h.Handler.WithAttrs(attrs), h.flush}
}

// WithGroup implements slog.Handler.
func (h urgentHandler) WithGroup(name string) slog.Handler {
	return urgentHandler{h.Handler.WithGroup(name), h.flush}
}

// openLog returns the log that the settings ask for, and what to call when nothing more will be logged.
func openLog(s settings.Log, w io.Writer) (log *slog.Logger, closeLog func() error) {
	buffer := newLogBuffer(w)
	options := &slog.HandlerOptions{Level: s.Level}
	var handler slog.Handler
	if s.Format == settings.LogText || s.Format == settings.LogAuto && isTerminal(w) {
		handler = slog.NewTextHandler(buffer, options)
	} else {
		handler = slog.NewJSONHandler(buffer, options)
	}
	return slog.New(urgentHandler{handler, buffer.flush}), buffer.Close
}
