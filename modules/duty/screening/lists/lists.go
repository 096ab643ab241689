// Package lists reads sanctions lists in the forms in which their authors publish them: SECO, the United Nations, the European Union,
// OFAC, and OpenSanctions. The form follows from the content.
//
// Files are read as a stream: the memory depends on the number of entries for SECO and OFAC, whose parts must be joined, and on the
// largest entry for the others. XML with a document type is rejected, so that entities are never expanded. After decompression, the
// bytes, the number of files, and the depth of elements and folders are bounded.
package lists

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"kontor/modules/kit/names"
)

// Entry is a person, an organisation or an object of a list.
type Entry struct {
	SourceID  string // the id in the file
	Kind      names.Kind
	Names     []string // the main name first
	Programs  []string
	Births    []names.Birth
	Countries []string // ISO 3166-1 alpha-2: nationality, registration or residence
}

// Format is the form of a file.
type Format string

// The formats.
const (
	SECO          Format = "seco"
	UN            Format = "un"
	EU            Format = "eu"
	OFAC          Format = "ofac"
	OpenSanctions Format = "opensanctions"
	FtM           Format = "ftm"
)

// Info is what a file says of itself.
type Info struct {
	Format  Format
	Version string // as in the file, usually a date; empty: the file has none
	Entries int
}

// The reasons for which a file is rejected.
var (
	ErrUnknownFormat = errors.New("the file has none of the known forms")
	ErrDelta         = errors.New("the file has changes alone; export the whole list")
	ErrMalformed     = errors.New("the file is damaged")
	ErrTooLarge      = errors.New("the file or one of its entries is too large")
	ErrEmpty         = errors.New("the file has no entries")
)

const (
	maxBytes   = 1 << 30 // of a file after decompression
	maxElement = 1 << 20 // of one entry; the largest of 2026 have some 100 kB
	maxEntries = 2_000_000
	maxValues  = 2000 // names, programs, dates or countries of an entry

	// maxJoined bounds the text that is kept of the lists of SECO and OFAC while their parts are joined, in bytes. Those of 2026 have some
	// 10 MB. maxJoinedEntries bounds their entries.
	maxJoined        = 128 << 20
	maxJoinedEntries = 500_000

	maxDirectory = 1 << 20 // of the list of files in an archive, in bytes
	maxFolders   = 3       // in each other
	maxDepth     = 64      // of XML elements around the entries
)

// Read reads a list and passes each entry to add, in no certain order. It stops at the first error of add. It returns ErrUnknownFormat,
// ErrDelta, ErrMalformed, ErrTooLarge and ErrEmpty, with the place in the file. Entries that were passed before an error must be discarded.
func Read(file io.ReaderAt, size int64, add func(Entry) error) (Info, error) {
	if size > maxBytes {
		return Info{}, ErrTooLarge
	}
	whole := io.NewSectionReader(file, 0, size)
	head := make([]byte, 4)
	if n, _ := io.ReadFull(whole, head); n == len(head) && bytes.Equal(head, []byte("PK\x03\x04")) {
		bounded := &directory{ReaderAt: file, bounded: true, left: maxDirectory}
		archive, err := zip.NewReader(bounded, size)
		if err != nil {
			return Info{}, failure(err)
		}
		bounded.bounded = false
		return ReadFolder(archive, add)
	}
	if _, err := whole.Seek(0, io.SeekStart); err != nil {
		return Info{}, err
	}
	return readStream(whole, add)
}

// ReadFile reads a list from a file, or from a folder with the files of OFAC.
func ReadFile(path string, add func(Entry) error) (Info, error) {
	f, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	if stat.IsDir() {
		return ReadFolder(os.DirFS(path), add)
	}
	return Read(f, stat.Size(), add)
}

// directory bounds the list of files in an archive while it is read: the library keeps all of it in memory.
type directory struct {
	io.ReaderAt
	bounded bool
	left    int
}

// ReadAt returns ErrTooLarge when the list is too long.
func (d *directory) ReadAt(p []byte, at int64) (int, error) {
	if d.bounded && len(p) > d.left {
		return 0, ErrTooLarge
	}
	n, err := d.ReaderAt.ReadAt(p, at)
	d.left -= n
	return n, err
}

// ReadFolder reads sdn.csv with alt.csv and add.csv, or the only file of a folder or archive.
func ReadFolder(folder fs.FS, add func(Entry) error) (Info, error) {
	return readFolder(folder, maxFolders, add)
}

func readFolder(folder fs.FS, deep int, add func(Entry) error) (Info, error) {
	files, err := fs.ReadDir(folder, ".")
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	byName := map[string]string{}
	for _, f := range files {
		byName[strings.ToLower(f.Name())] = f.Name()
	}
	if byName["sdn.csv"] != "" {
		return counted(add, OFAC, func(c *counter) (string, error) { return "", readOFAC(folder, byName, c.add) })
	}
	if len(files) != 1 || deep == 0 {
		return Info{}, ErrUnknownFormat
	}
	if files[0].IsDir() {
		inner, err := fs.Sub(folder, files[0].Name())
		if err != nil {
			return Info{}, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return readFolder(inner, deep-1, add)
	}
	f, err := folder.Open(files[0].Name())
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	return readStream(f, add)
}

// readStream recognizes the form by the first bytes.
func readStream(r io.Reader, add func(Entry) error) (Info, error) {
	limited := &budget{r: r, total: maxBytes}
	limited.next()
	b := bufio.NewReaderSize(limited, 64<<10)
	if bom, _ := b.Peek(3); string(bom) == "\xef\xbb\xbf" {
		_, _ = b.Discard(3) // cannot fail: they have been read
	}
	head, err := b.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return Info{}, failure(err)
	}
	start := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("<")):
		return readXML(b, limited, add)
	case bytes.HasPrefix(start, []byte("{")):
		return counted(add, FtM, func(c *counter) (string, error) { return readFtM(b, limited, c.add) })
	case isSimpleHeader(start):
		return counted(add, OpenSanctions, func(c *counter) (string, error) { return readSimple(b, limited, c.add) })
	case isSDN(start):
		return counted(add, OFAC, func(c *counter) (string, error) { return "", readSDN(b, limited, c.add) })
	default:
		return Info{}, ErrUnknownFormat
	}
}

// counter passes entries that have an id and a name, and counts them.
type counter struct {
	pass func(Entry) error
	n    int
}

func (c *counter) add(e Entry) error {
	e.Names = distinct(e.Names)
	e.Programs, e.Countries = distinct(e.Programs), distinct(e.Countries)
	if e.SourceID == "" || len(e.Names) == 0 {
		return nil
	}
	if c.n++; c.n > maxEntries || max(len(e.Names), len(e.Programs), len(e.Births), len(e.Countries)) > maxValues {
		return ErrTooLarge
	}
	return c.pass(e)
}

// distinct removes empty and repeated texts, and space around them.
func distinct(all []string) []string {
	seen := map[string]bool{}
	kept := all[:0]
	for _, text := range all {
		text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
		if text != "" && !seen[text] {
			seen[text] = true
			kept = append(kept, text)
		}
	}
	return kept
}

// counted reads a list and says what it was. A list without entries is an error: it would switch screening off.
func counted(add func(Entry) error, format Format, read func(c *counter) (version string, err error)) (Info, error) {
	c := &counter{pass: add}
	version, err := read(c)
	if err == nil && c.n == 0 {
		err = ErrEmpty
	}
	return Info{format, version, c.n}, err
}

// failure says that a file is damaged, unless the error has a reason of its own.
func failure(err error) error {
	for _, own := range []error{ErrTooLarge, ErrDelta, ErrMalformed, ErrUnknownFormat} {
		if errors.Is(err, own) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// budget bounds the bytes of a file and of one entry.
type budget struct {
	r     io.Reader
	total int64
	left  int64
}

// next allows the bytes of another entry.
func (b *budget) next() { b.left = maxElement }

// Read returns ErrTooLarge where a bound is reached.
func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 || b.total <= 0 {
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left, b.total)])
	b.left -= int64(n)
	b.total -= int64(n)
	return n, err
}

// size returns about how many bytes of memory an entry takes.
func (e *Entry) size() int {
	const date = 24
	return len(e.SourceID) + sizeOf(e.Names) + sizeOf(e.Programs) + sizeOf(e.Countries) + date*len(e.Births)
}

func sizeOf(texts []string) (n int) {
	const header = 16
	for _, text := range texts {
		n += header + len(text)
	}
	return n
}
