// Package breached looks passwords up in a file of passwords from known data breaches, as Have I Been Pwned publishes it: one
// SHA-1 hash in hexadecimal digits per line, in ascending order, optionally followed by a colon and a count. Lines end with LF
// or CRLF and may differ in length.
//
// The file has tens of gigabytes and is never loaded. A look-up is a binary search by offset: each step reads one small block.
// The hash is the index of the file and protects nothing; passwords are stored as Argon2id.
package breached

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the hash is the index of the file, as it is published
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	hashDigits = 2 * sha1.Size
	// maxLine is the longest line in bytes, with its end: a hash, a colon, a count and CRLF.
	maxLine = 80
	// block is the size of the last read of a search.
	block = 4096

	firstLines = 100 // checked from the beginning
	samples    = 256 // checked at even distances
)

// Errors of a file that is not as expected. Others are errors of the file system.
var (
	ErrForm   = errors.New("is not a list of SHA-1 hashes: each line must be 40 hexadecimal digits, optionally followed by a colon and a count")
	ErrOrder  = errors.New("is not sorted by hash; download the version ordered by hash, or sort it")
	errEmpty  = errors.New("is empty")
	errNoFile = errors.New("is not a regular file")
)

// File is a file of breached passwords. It is opened for each look-up, so a file that is replaced by renaming takes effect at
// once.
type File struct{ path string }

// Open checks a file: its first lines, and the form and order of samples from all of it.
func Open(path string) (*File, error) {
	f := &File{path}
	return f, f.with(func(s *searcher) error {
		if err := s.checkBeginning(); err != nil {
			return err
		}
		return s.checkSamples()
	})
}

// Contains reports whether the file has the hash of a password.
func (f *File) Contains(password string) (found bool, err error) {
	sum := sha1.Sum([]byte(password)) //nolint:gosec // see the import
	err = f.with(func(s *searcher) error {
		found, err = s.contains(sum)
		return err
	})
	return found, err
}

// with opens the file for one operation.
func (f *File) with(use func(*searcher) error) error {
	info, err := os.Stat(f.path) // opening a pipe would wait for its writer
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w", f.path, errNoFile)
	}
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err = file.Stat(); err != nil {
		return err
	}
	if info.Size() == 0 {
		return fmt.Errorf("%s %w", f.path, errEmpty)
	}
	if err := use(&searcher{file: file, size: info.Size()}); err != nil {
		return fmt.Errorf("%s %w", f.path, err)
	}
	return nil
}

// hash is a SHA-1 hash.
type hash = [sha1.Size]byte

// searcher reads one version of a file.
type searcher struct {
	file  io.ReaderAt
	size  int64
	reads int
}

// contains searches the lines that begin between two offsets. Each step compares the first line that begins in the upper half.
func (s *searcher) contains(wanted hash) (bool, error) {
	low, high := int64(0), s.size
	for high-low > block {
		middle := low + (high-low)/2
		line, start, end, err := s.lineFrom(middle)
		switch {
		case errors.Is(err, io.EOF) || err == nil && start >= high:
			high = middle // no line begins in the upper half
			continue
		case err != nil:
			return false, err
		}
		switch bytes.Compare(line[:], wanted[:]) {
		case 0:
			return true, nil
		case -1:
			low = end
		default:
			high = middle
		}
	}
	return s.scan(wanted, low, high)
}

// scan compares all lines that begin between two offsets. low must be the beginning of a line.
func (s *searcher) scan(wanted hash, low, high int64) (bool, error) {
	text, err := s.read(low, min(high-low+maxLine, s.size-low))
	if err != nil {
		return false, err
	}
	for at := int64(0); low+at < high && at < int64(len(text)); {
		line, length, err := parseLine(text[at:], low+at+maxLine > s.size)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if line == wanted {
			return true, nil
		}
		at += int64(length)
	}
	return false, nil
}

// lineFrom returns the first line that begins at an offset or later, with its own offset and that of the next line. It returns
// io.EOF when no line begins there.
func (s *searcher) lineFrom(offset int64) (line hash, start, end int64, err error) {
	from := max(offset-1, 0)
	text, err := s.read(from, min(2*maxLine+1, s.size-from))
	if err != nil {
		return hash{}, 0, 0, err
	}
	skip := 0
	if offset > 0 {
		feed := bytes.IndexByte(text, '\n')
		switch {
		case feed < 0 && from+int64(len(text)) == s.size && len(text) <= maxLine:
			return hash{}, 0, 0, io.EOF
		case feed < 0 || feed > maxLine:
			return hash{}, 0, 0, ErrForm
		}
		skip = feed + 1
	}
	start = from + int64(skip)
	line, length, err := parseLine(text[skip:], from+int64(len(text)) == s.size)
	return line, start, start + int64(length), err
}

// read reads exactly n bytes.
func (s *searcher) read(offset, n int64) ([]byte, error) {
	s.reads++
	text := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(s.file, offset, n), text); err != nil {
		return nil, fmt.Errorf("cannot be read at byte %d: %w", offset, noEOF(err))
	}
	return text, nil
}

// noEOF replaces io.EOF, which marks the end of the lines: the file has become shorter.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseLine parses the line at the beginning of a text and returns its length with its end. last reports that the text reaches
// to the end of the file: its last line may have no end. It returns io.EOF for the end of the file, and for an empty line there.
func parseLine(text []byte, last bool) (line hash, length int, err error) {
	content, _, ended := bytes.Cut(text, []byte{'\n'})
	if !ended && !last {
		return hash{}, 0, ErrForm
	}
	length = len(content)
	if ended {
		length++
	}
	if length > maxLine {
		return hash{}, 0, ErrForm
	}
	content = bytes.TrimSuffix(content, []byte{'\r'})
	if len(content) == 0 && last && length == len(text) {
		return hash{}, length, io.EOF
	}
	digits, count, counted := bytes.Cut(content, []byte{':'})
	if len(digits) != hashDigits || counted && !isNumber(count) {
		return hash{}, 0, ErrForm
	}
	if _, err := hex.Decode(line[:], digits); err != nil {
		return hash{}, 0, ErrForm
	}
	return line, length, nil
}

func isNumber(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

// checkBeginning checks form and order of the first lines.
func (s *searcher) checkBeginning() error {
	text, err := s.read(0, min(firstLines*maxLine, s.size))
	if err != nil {
		return err
	}
	var before hash
	for n := 1; n <= firstLines; n++ {
		line, length, err := parseLine(text, s.size <= firstLines*maxLine)
		switch {
		case errors.Is(err, io.EOF) && n > 1:
			return nil
		case err != nil:
			return fmt.Errorf("(line %d) %w", n, notEOF(err))
		case bytes.Compare(line[:], before[:]) < 0:
			return fmt.Errorf("(line %d) %w", n, ErrOrder)
		}
		before, text = line, text[length:]
	}
	return nil
}

// notEOF returns ErrForm for the end of a file without lines.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrForm
	}
	return err
}

// checkSamples checks form and order of lines at even distances.
func (s *searcher) checkSamples() error {
	var before hash
	for n := range int64(samples) {
		offset := s.size / samples * n
		line, _, _, err := s.lineFrom(offset)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("(byte %d) %w", offset, err)
		case bytes.Compare(line[:], before[:]) < 0:
			return fmt.Errorf("(byte %d) %w", offset, ErrOrder)
		}
		before = line
	}
	return nil
}
