package symbol

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// Segment modes of the QR code standard.
const (
	modeEnd       = 0
	modeNumeric   = 1
	modeAlnum     = 2
	modeAppend    = 3
	modeByte      = 4
	modeFNC1      = 5
	modeECI       = 7
	modeKanji     = 8
	modeFNC1Other = 9
)

const alnum = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"

const (
	noECI   = -1
	utf8ECI = 26
)

// chunk is a run of bytes under one declared character set.
type chunk struct {
	eci   int
	bytes []byte
}

// readText decodes the data codewords of a symbol. The character set is the declared one, otherwise UTF-8 if the bytes are
// valid UTF-8, otherwise Windows-1252. legacy reports a character set other than UTF-8.
func readText(data []byte, version int) (text string, legacy, ok bool) {
	b := &bitReader{data: data}
	chunks := []chunk{{eci: noECI}}
	add := func(bytes ...byte) {
		last := &chunks[len(chunks)-1]
		last.bytes = append(last.bytes, bytes...)
	}
	for b.left() >= 4 {
		mode := b.read(4)
		if mode == modeEnd {
			break
		}
		switch mode {
		case modeAppend:
			b.read(16)
		case modeFNC1:
		case modeFNC1Other:
			b.read(8)
		case modeECI:
			if eci := b.eci(); eci != chunks[len(chunks)-1].eci {
				chunks = append(chunks, chunk{eci: eci})
			}
		case modeNumeric, modeAlnum, modeByte, modeKanji:
			if !b.segment(mode, b.read(countBits(mode, version)), add) {
				return "", false, false
			}
		default:
			return "", false, false
		}
		if b.failed {
			return "", false, false
		}
	}
	var out strings.Builder
	for _, c := range chunks {
		s, old := c.decode()
		legacy = legacy || old
		out.WriteString(s)
	}
	return out.String(), legacy, true
}

// countBits returns the width of the length of a segment, in bits.
func countBits(mode, version int) int {
	group := 0
	if version > 26 {
		group = 2
	} else if version > 9 {
		group = 1
	}
	switch mode {
	case modeNumeric:
		return 10 + 2*group
	case modeAlnum:
		return 9 + 2*group
	case modeByte:
		return [3]int{8, 16, 16}[group]
	default:
		return 8 + 2*group
	}
}

type bitReader struct {
	data   []byte
	at     int
	failed bool
}

func (b *bitReader) left() int { return 8*len(b.data) - b.at }

func (b *bitReader) read(n int) int {
	if n > b.left() {
		b.failed = true
		return 0
	}
	v := 0
	for range n {
		v = v<<1 | int(b.data[b.at/8]>>(7-b.at%8)&1)
		b.at++
	}
	return v
}

func (b *bitReader) eci() int {
	first := b.read(8)
	switch {
	case first&0x80 == 0:
		return first & 0x7f
	case first&0xc0 == 0x80:
		return first&0x3f<<8 | b.read(8)
	default:
		return first&0x1f<<16 | b.read(16)
	}
}

// segment reads count characters of a mode.
func (b *bitReader) segment(mode, count int, add func(...byte)) bool {
	for count > 0 && !b.failed {
		switch mode {
		case modeByte:
			add(byte(b.read(8)))
			count--
		case modeNumeric:
			digits := min(count, 3)
			value := b.read([4]int{0, 4, 7, 10}[digits])
			if value >= [4]int{0, 10, 100, 1000}[digits] {
				return false
			}
			for power := [4]int{0, 1, 10, 100}[digits]; power > 0; power /= 10 {
				add('0' + byte(value/power%10))
			}
			count -= digits
		case modeAlnum:
			if count == 1 {
				value := b.read(6)
				if value >= len(alnum) {
					return false
				}
				add(alnum[value])
				return !b.failed
			}
			value := b.read(11)
			if value >= len(alnum)*len(alnum) {
				return false
			}
			add(alnum[value/len(alnum)], alnum[value%len(alnum)])
			count -= 2
		case modeKanji:
			// QR-bills do not use Kanji. A placeholder keeps the number of characters.
			b.read(13)
			add([]byte(string(utf8.RuneError))...)
			count--
		}
	}
	return !b.failed
}

// decode returns the text of the bytes.
func (c chunk) decode() (text string, legacy bool) {
	set, declared := charsets[c.eci]
	switch {
	case c.eci == noECI || c.eci == utf8ECI || !declared:
		if utf8.Valid(c.bytes) {
			return string(c.bytes), false
		}
		set = charmap.Windows1252
	}
	decoded, err := set.NewDecoder().Bytes(c.bytes)
	if err != nil {
		return strings.ToValidUTF8(string(c.bytes), "\ufffd"), true
	}
	return string(decoded), true
}

// charsets are the single-byte character sets that an ECI can declare. Windows-1252 contains all printable characters of
// Latin-1.
var charsets = map[int]encoding.Encoding{
	1: charmap.Windows1252, 3: charmap.Windows1252, 4: charmap.ISO8859_2, 5: charmap.ISO8859_3,
	6: charmap.ISO8859_4, 7: charmap.ISO8859_5, 8: charmap.ISO8859_6, 9: charmap.ISO8859_7,
	10: charmap.ISO8859_8, 11: charmap.ISO8859_9, 12: charmap.ISO8859_10, 15: charmap.ISO8859_13,
	16: charmap.ISO8859_14, 17: charmap.ISO8859_15, 18: charmap.ISO8859_16, 21: charmap.Windows1250,
	22: charmap.Windows1251, 23: charmap.Windows1252, 24: charmap.Windows1256,
}
