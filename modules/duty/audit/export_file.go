package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kontor/store/audittrail"
)

// fileSink appends batches to a file. It opens the file for each batch. Log rotation may therefore rename the file at any time,
// without a signal: the next batch goes to a new file.
type fileSink struct{ path string }

func (f *fileSink) target() string { return "file " + f.path }

func (f *fileSink) close() {}

// write appends a batch and its head to the file and syncs it. After an error nothing of the batch remains in the file.
func (f *fileSink) write(_ context.Context, b audittrail.ExportBatch) (err error) {
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := endOfLines(file)
	if err != nil {
		return err
	}
	text := append(bytes.Join(b.Lines, nil), b.Head...)
	if _, err = file.WriteAt(text, end); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Truncate(end)) // a partial batch would look like damage
	}
	return nil
}

// endOfLines returns the end of the last complete line. It truncates an incomplete line that a crash left behind; the exporter
// writes its entry again.
func endOfLines(file *os.File) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return 0, err
	}
	const maxLine = 1 << 20 // longer than any line
	tail := make([]byte, min(size, maxLine))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, err
	}
	last := bytes.LastIndexByte(tail, '\n')
	if last < 0 && int64(len(tail)) < size {
		return 0, fmt.Errorf("%s is no audit export: its last line is too long; nothing was written to it", file.Name())
	}
	end := size - int64(len(tail)) + int64(last) + 1
	if end == size {
		return end, nil
	}
	return end, file.Truncate(end)
}
