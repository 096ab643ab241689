package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite"
)

const (
	manifestName = "manifest.json"
	pagesName    = "kontor.pages"
	sumsName     = "kontor.sums"

	format        = 2
	maxSmallEntry = 1 << 20 // bytes of the manifest, and of the key
	maxWindow     = 8 << 20 // bytes of memory that a compressed file may demand
	numberBytes   = 8       // of the number before a page of an increment
	sumBytes      = 16
	maxPageSize   = 1 << 16
	maxPages      = 1 << 32 // SQLite's limit
)

// manifest describes a backup.
type manifest struct {
	Format    int        `json:"format"`
	ID        string     `json:"id"`
	Base      string     `json:"base,omitempty"` // id of the backup that an increment continues
	CreatedAt clock.Time `json:"created_at"`
	Schema    int64      `json:"schema"`
	WithKey   bool       `json:"with_key"`
	Origin    *Origin    `json:"origin,omitempty"` // of a continuous backup

	sqlite.Extent // of the database
}

func (m manifest) check() error {
	if m.Format != 0 && m.Format != format {
		return fmt.Errorf("backup has format %d, this program reads %d: %w", m.Format, format, engine.ErrNewerSchema)
	}
	if m.Format == 0 || m.ID == "" || m.PageSize < 512 || m.PageSize > maxPageSize || m.Pages < 1 || m.Pages > maxPages {
		return errNoBackup
	}
	return nil
}

var errNoBackup = fmt.Errorf("%w: not a backup of Kontor, or an incomplete one", engine.ErrCorrupt)

// sum identifies the content of a page.
type sum [sumBytes]byte

func sumOf(page []byte) sum {
	whole := sha256.Sum256(page)
	return sum(whole[:])
}

// writer writes a backup and counts its bytes.
type writer struct {
	counted  *countingWriter
	compress *zstd.Encoder
	archive  *tar.Writer
}

func newWriter(out io.Writer) (*writer, error) {
	counted := &countingWriter{out: out}
	compress, err := zstd.NewWriter(counted, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(maxWindow), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return &writer{counted: counted, compress: compress, archive: tar.NewWriter(compress)}, nil
}

// begin begins an entry.
func (w *writer) begin(name string, size int64, at clock.Time) error {
	return w.archive.WriteHeader(&tar.Header{Name: name, Mode: datadir.FileMode, Size: size, ModTime: at.Std(), Format: tar.FormatPAX})
}

func (w *writer) put(name string, content []byte, at clock.Time) error {
	if err := w.begin(name, int64(len(content)), at); err != nil {
		return err
	}
	_, err := w.archive.Write(content)
	return err
}

func (w *writer) close() error { return errors.Join(w.archive.Close(), w.compress.Close()) }

type countingWriter struct {
	out   io.Writer
	bytes int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.out.Write(b)
	w.bytes += int64(n)
	return n, err
}

// content receives the entries of a backup in their order. Every function but sums may be nil: its entry is skipped.
type content struct {
	manifest func(m manifest) error
	key      func(text []byte) error
	page     func(number int64, page []byte) error
	sums     func(in io.Reader, given bool) error // not given: the entry only ends the backup
}

// read reads a backup and passes on what it holds. It rejects names that it does not know: a backup does not decide where files
// are written.
func read(in io.Reader, to content) (m manifest, err error) {
	expand, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return m, err
	}
	defer expand.Close()
	archive := tar.NewReader(expand)
	complete := false
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, fmt.Errorf("%w: %w", errNoBackup, err)
		}
		if complete || h.Typeflag != tar.TypeReg || (m.Format == 0) != (h.Name == manifestName) {
			return m, unexpected(h.Name)
		}
		if err := readEntry(archive, h, &m, to); err != nil {
			return m, err
		}
		complete = h.Name == sumsName
	}
	if !complete {
		return m, errNoBackup
	}
	return m, readEnd(expand)
}

// maxEnd bounds what may follow the last entry: the blocks of zeros that end a tar file.
const maxEnd = 64 << 10

// readEnd reads to the end of a backup, which verifies the checksum of the compressed stream.
func readEnd(in io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(in, maxEnd+1))
	if err == nil && n > maxEnd {
		err = errors.New("something follows the last entry")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return nil
}

func unexpected(name string) error { return fmt.Errorf("%w: unexpected %q", engine.ErrCorrupt, name) }

func readEntry(in io.Reader, h *tar.Header, m *manifest, to content) error {
	switch {
	case h.Name == manifestName && h.Size <= maxSmallEntry:
		if err := json.NewDecoder(in).Decode(m); err != nil {
			return fmt.Errorf("%w: %w", errNoBackup, err)
		}
		if err := m.check(); err != nil || to.manifest == nil {
			return err
		}
		return to.manifest(*m)
	case h.Name == datadir.Key && h.Size <= maxSmallEntry:
		if to.key == nil {
			return nil
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(in); err != nil {
			return err
		}
		return to.key(text.Bytes())
	case h.Name == datadir.Database && m.Base == "" && h.Size == m.Bytes():
		return readPages(in, *m, to.page)
	case h.Name == pagesName && m.Base != "" && h.Size%(numberBytes+m.PageSize) == 0:
		return readPages(in, *m, to.page)
	case h.Name == sumsName && (h.Size == m.Pages*sumBytes || h.Size == 0 && m.Base != ""):
		return to.sums(in, h.Size > 0)
	}
	return unexpected(h.Name)
}
