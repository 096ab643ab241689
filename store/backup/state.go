package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite"
)

// pageSource reads the pages of one state of a database.
type pageSource interface {
	EachPage(ctx context.Context, numbers iter.Seq[int64], fn func(number int64, page []byte) error) error
}

// state is one state of a database on its way into a backup. Without a base in the manifest all pages are written.
type state struct {
	pages    pageSource
	manifest manifest
	key      []byte // nil: left out
	changed  []int64
	sums     []sum // of all pages; nil for a recording whose other pages are not read
	progress func(done, total int64)
}

// WriteRecording writes a recording of a database that is being served: all of it, or, after the backup with the id before, only
// the pages that have changed. It returns the id of the new backup.
func WriteRecording(ctx context.Context, taken *sqlite.Recording, before string, origin Origin, out io.Writer) (id string, r Result, err error) {
	w, err := newWriter(out)
	if err != nil {
		return "", r, err
	}
	m := manifest{Format: format, ID: rand.Text(), Base: before, CreatedAt: taken.At, Schema: taken.Schema, Extent: taken.Extent, Origin: &origin}
	s := state{pages: taken, manifest: m}
	for _, n := range taken.Changed {
		if n <= taken.Pages { // the database may have become smaller
			s.changed = append(s.changed, n)
		}
	}
	r, err = s.write(ctx, w)
	return m.ID, r, err
}

// base is what an increment needs to know about the backup that it continues.
type base struct {
	id   string
	sums []sum
}

// readBase reads the sums of a backup. An empty name returns nil.
func readBase(name string) (*base, error) {
	if name == "" {
		return nil, nil
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, datadir.Cause(err))
	}
	defer in.Close()
	b := &base{}
	m, err := read(in, content{sums: func(in io.Reader, _ bool) error {
		for {
			var s sum
			if _, err := io.ReadFull(in, s[:]); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			b.sums = append(b.sums, s)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b.id = m.ID
	return b, nil
}

// compare finds the pages that have changed since a base.
func (s *state) compare(ctx context.Context, b *base) error {
	s.manifest.Base = b.id
	return s.pages.EachPage(ctx, s.manifest.All(), func(n int64, page []byte) error {
		s.sums = append(s.sums, sumOf(page))
		if n > int64(len(b.sums)) || b.sums[n-1] != s.sums[n-1] {
			s.changed = append(s.changed, n)
		}
		s.report(n)
		return nil
	})
}

// write writes the entries of the backup.
func (s *state) write(ctx context.Context, w *writer) (Result, error) {
	m := &s.manifest
	result := Result{Database: m.Bytes(), Pages: m.Pages, Changed: m.Pages}
	described, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Result{}, err
	}
	if err := w.put(manifestName, described, m.CreatedAt); err != nil {
		return Result{}, err
	}
	if s.key != nil {
		if err := w.put(datadir.Key, s.key, m.CreatedAt); err != nil {
			return Result{}, err
		}
	}
	if m.Base == "" {
		err = s.writeAll(ctx, w)
	} else {
		result.Changed = int64(len(s.changed))
		err = s.writeChanged(ctx, w)
	}
	if err != nil {
		return Result{}, err
	}
	if err := w.begin(sumsName, int64(len(s.sums))*sumBytes, m.CreatedAt); err != nil {
		return Result{}, err
	}
	for _, one := range s.sums {
		if _, err := w.archive.Write(one[:]); err != nil {
			return Result{}, err
		}
	}
	err = w.close()
	result.Compressed = w.counted.bytes
	return result, err
}

func (s *state) writeAll(ctx context.Context, w *writer) error {
	if err := w.begin(datadir.Database, s.manifest.Bytes(), s.manifest.CreatedAt); err != nil {
		return err
	}
	return s.pages.EachPage(ctx, s.manifest.All(), func(n int64, page []byte) error {
		s.sums = append(s.sums, sumOf(page))
		_, err := w.archive.Write(page)
		s.report(n)
		return err
	})
}

func (s *state) writeChanged(ctx context.Context, w *writer) error {
	size := int64(len(s.changed)) * (numberBytes + s.manifest.PageSize)
	if err := w.begin(pagesName, size, s.manifest.CreatedAt); err != nil {
		return err
	}
	return s.pages.EachPage(ctx, slices.Values(s.changed), func(n int64, page []byte) error {
		if _, err := w.archive.Write(binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
			return err
		}
		_, err := w.archive.Write(page)
		return err
	})
}

// reportEvery is the number of pages between two reports of the progress.
const reportEvery = 4096

func (s *state) report(pages int64) {
	if s.progress != nil && (pages%reportEvery == 0 || pages == s.manifest.Pages) {
		s.progress(pages*s.manifest.PageSize, s.manifest.Bytes())
	}
}

// readPages passes on the pages of an entry: numbered ones of an increment, or all in their order.
func readPages(in io.Reader, m manifest, to func(number int64, page []byte) error) error {
	if to == nil {
		return nil
	}
	page, before := make([]byte, m.PageSize), make([]byte, numberBytes)
	for n := int64(1); ; n++ {
		number := n
		if m.Base != "" {
			if _, err := io.ReadFull(in, before); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			number = int64(binary.BigEndian.Uint64(before))
		}
		if _, err := io.ReadFull(in, page); m.Base == "" && errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if number < 1 || number > m.Pages {
			return fmt.Errorf("%w: page %d of %d", engine.ErrCorrupt, number, m.Pages)
		}
		if err := to(number, page); err != nil {
			return err
		}
	}
}

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
