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
	logDelay       = 200 * time.Millisecond // longest time that the buffer holds a line
)

// logBuffer buffers log lines, so that a line per request does not cost a system call per request. It writes a line after
// at most logDelay, and at once when the buffer is full. It is safe for concurrent use.
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
	b.timer.Stop() // the timer runs only while the buffer holds lines
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
	_ = b.write() // a failure to write the log cannot be logged
}

// write empties the buffer, even when writing fails: bufio keeps an error for ever, but a full disk may have free space
// later.
func (b *logBuffer) write() error {
	err := b.w.Flush()
	if err != nil {
		b.w.Reset(b.out)
	}
	return err
}

// Close writes the buffered lines. Later lines are written at once.
func (b *logBuffer) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer.Stop()
	b.closed = true
	return b.write()
}

// errorFlushHandler flushes the buffer after each error: a process that is about to crash may not reach the next timer.
type errorFlushHandler struct {
	slog.Handler
	flush func()
}

// Handle implements slog.Handler.
func (h errorFlushHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelError {
		h.flush()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h errorFlushHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorFlushHandler{h.Handler.WithAttrs(attrs), h.flush}
}

// WithGroup implements slog.Handler.
func (h errorFlushHandler) WithGroup(name string) slog.Handler {
	return errorFlushHandler{h.Handler.WithGroup(name), h.flush}
}

// openLog returns the logger that the settings describe. Call closeLog after the last line.
func openLog(s settings.Log, w io.Writer) (log *slog.Logger, closeLog func() error) {
	buffer := newLogBuffer(w)
	options := &slog.HandlerOptions{Level: s.Level}
	var handler slog.Handler
	if s.Format == settings.LogText || s.Format == settings.LogAuto && isTerminal(w) {
		handler = slog.NewTextHandler(buffer, options)
	} else {
		handler = slog.NewJSONHandler(buffer, options)
	}
	return slog.New(errorFlushHandler{handler, buffer.flush}), buffer.Close
}
