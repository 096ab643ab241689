package breached

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func digest(password string) string { return fmt.Sprintf("%X", sha1.Sum([]byte(password))) }

// list returns a sorted file of the passwords from 0 to n-1, in which lines differ in length.
func list(n int, end string) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = digest(fmt.Sprint(i))
		if i%3 > 0 {
			lines[i] += ":" + strings.Repeat("7", i%19+1)
		}
		if i%2 > 0 {
			lines[i] = strings.ToLower(lines[i])
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(strings.ToUpper(a), strings.ToUpper(b)) })
	return strings.Join(lines, end) + end
}

func write(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "hashes.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Every line is found, also the first and the last, and nothing else is.
func TestContains_FindsEveryLineAndNothingElse(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		for _, n := range []int{1, 2, 3, 50, 99, 101, 5000} {
			for _, text := range []string{list(n, end), strings.TrimSuffix(list(n, end), end), list(n, end) + end} {
				f, err := Open(write(t, text))
				if err != nil {
					t.Fatalf("%d lines: %v", n, err)
				}
				for i := range n + 100 {
					if found, err := f.Contains(fmt.Sprint(i)); err != nil || found != (i < n) {
						t.Fatalf("%d lines, end %q: password %d found %v, %v", n, end, i, found, err)
					}
				}
			}
		}
	}
}

// A look-up reads a few blocks, whatever the size of the file.
func TestContains_ReadsLittle(t *testing.T) {
	text := list(200_000, "\n")
	for i := range 2000 {
		s := &searcher{file: strings.NewReader(text), size: int64(len(text))}
		if _, err := s.contains(sha1.Sum([]byte(fmt.Sprint(i * 151)))); err != nil {
			t.Fatal(err)
		}
		if s.reads > 14 { // 12 halvings of 10 MB down to a block
			t.Fatalf("%d reads", s.reads)
		}
	}
}

func TestOpen_RejectsOtherFiles(t *testing.T) {
	good := strings.Split(strings.TrimSpace(list(2000, "\n")), "\n")
	swapped := slices.Clone(good)
	slices.Reverse(swapped[1000:])
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"empty":                        {"", errEmpty},
		"an empty line":                {"\n", ErrForm},
		"empty lines":                  {"\n\n\n", ErrForm},
		"text":                         {"correct horse battery staple\n", ErrForm},
		"MD4 hashes":                   {strings.Repeat("0123456789ABCDEF0123456789ABCDEF:3\n", 5), ErrForm},
		"SHA-256 hashes":               {strings.Repeat("0", 64) + "\n", ErrForm},
		"no hexadecimal digits":        {strings.Repeat("g", 40) + "\n", ErrForm},
		"a byte order mark":            {"\ufeff" + digest("1") + "\n", ErrForm},
		"UTF-16":                       {strings.Join(strings.Split(digest("1"), ""), "\x00") + "\n", ErrForm},
		"a count that is no number":    {digest("1") + ":many\n", ErrForm},
		"no count after the colon":     {digest("1") + ":\n", ErrForm},
		"a long count":                 {digest("1") + ":" + strings.Repeat("1", 100) + "\n", ErrForm},
		"no line ends":                 {strings.Repeat(digest("1"), 1000), ErrForm},
		"an empty line between":        {good[0] + "\n\n" + good[1] + "\n", ErrForm},
		"a wrong line 50":              {strings.Join(good[:49], "\n") + "\nx\n", ErrForm},
		"two lines in the wrong order": {good[1] + "\n" + good[0] + "\n", ErrOrder},
		"the second half not sorted":   {strings.Join(swapped, "\n") + "\n", ErrOrder},
		"zeros":                        {strings.Repeat("\x00", 100_000), ErrForm},
	} {
		if _, err := Open(write(t, c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, errNoFile) {
		t.Errorf("a directory: %v", err)
	}
}

// A file that is replaced takes effect at once. One that vanishes or breaks is an error, not a password that is not in it.
func TestContains_FollowsTheFile(t *testing.T) {
	name := write(t, list(1000, "\n"))
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(digest("new")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Contains("new"); err != nil || !found {
		t.Errorf("after a replacement: %v %v", found, err)
	}
	for _, text := range []string{"", "gone\n", strings.Repeat("\x00", 9000)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := f.Contains("new"); err == nil || found {
			t.Errorf("%q: found %v without an error", text, found)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Contains("new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
}

// Any file ends the search, after few reads. A sorted file of well-formed lines is searched correctly.
func FuzzContains(f *testing.F) {
	f.Add([]byte(list(300, "\r\n")), "7")
	f.Add([]byte(list(3, "\n")), "7")
	f.Add([]byte(strings.Repeat("\n", 9000)), "")
	f.Add([]byte(strings.Repeat("A", 9000)), "x")
	f.Fuzz(func(t *testing.T, text []byte, password string) {
		s := &searcher{file: bytes.NewReader(text), size: int64(len(text))}
		wanted := sha1.Sum([]byte(password))
		found, err := s.contains(wanted)
		if s.reads > 64 {
			t.Fatalf("%d reads of %d bytes", s.reads, len(text))
		}
		sorted, has := naive(text, wanted)
		if sorted && (err != nil || found != has) {
			t.Fatalf("found %v, %v; want %v in %q", found, err, has, text)
		}
		if found && !strings.Contains(strings.ToLower(string(text)), fmt.Sprintf("%x", wanted)) {
			t.Fatal("found what is not in the file")
		}
	})
}

// naive reads all lines. sorted reports whether they are well-formed and in order.
func naive(text []byte, wanted hash) (sorted, has bool) {
	var before hash
	for len(text) > 0 {
		line, length, err := parseLine(text, true)
		if err != nil {
			return length == len(text) && length > 0, has
		}
		if bytes.Compare(line[:], before[:]) < 0 {
			return false, false
		}
		has = has || line == wanted
		before, text = line, text[length:]
	}
	return true, has
}

func BenchmarkContains(b *testing.B) {
	f, err := Open(write(b, list(200_000, "\n")))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Contains("a password that is not there"); err != nil {
			b.Fatal(err)
		}
	}
}
