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

// fileSink appends batches to a file. The file is opened by its name for each batch, so that whoever rotates logs may
// rename it at any moment: the next batch goes into a new file, and no signal is needed.
type fileSink struct{ path string }

func (f *fileSink) target() string { return "file " + f.path }

func (f *fileSink) close() {}

// write appends a batch and its head and syncs the file, all or nothing.
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
		return errors.Join(err, file.Truncate(end)) // half a batch would look like a damaged one
	}
	return nil
}

// endOfLines finds where the last whole line ends, and cuts off a line behind it that a crash left unfinished: its entry
// comes again.
func endOfLines(file *os.File) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return 0, err
	}
	const most = 1 << 20 // longer than any line
	tail := make([]byte, min(size, most))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, err
	}
	last := bytes.LastIndexByte(tail, '\n')
	if last < 0 && int64(len(tail)) < size {
		return 0, fmt.Errorf("%s ends with a line that is no line of an export; nothing is written to it", file.Name())
	}
	end := size - int64(len(tail)) + int64(last) + 1
	if end == size {
		return end, nil
	}
	return end, file.Truncate(end)
}
