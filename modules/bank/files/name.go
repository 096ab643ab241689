package files

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxNameRunes = 120
	maxNameBytes = 200 // file systems allow 255 for a name
)

// extensions are the file extensions of each media type; the first one is added to names without one of them.
var extensions = map[string][]string{
	mediaPDF:  {".pdf"},
	mediaJPEG: {".jpg", ".jpeg", ".jpe", ".jfif"},
	mediaPNG:  {".png"},
}

// reserved are names that Windows opens as devices, with any extension.
var reserved = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}

// cleanName returns a name under which any system can store the file: the last part of a path, with an extension of the type that the
// content has. Characters that are invisible, change the direction of the text or have a meaning in a path are removed.
func cleanName(name, mediaType string) string {
	name = strings.ToValidUTF8(name, "")
	if at := strings.LastIndexAny(name, `/\`); at >= 0 {
		name = name[at+1:]
	}
	name = norm.NFC.String(strings.Map(printable, name))
	name = strings.Trim(strings.Join(strings.Fields(name), " "), ". ")
	base, extension := splitExtension(name, mediaType)
	base = strings.TrimRight(shorten(base, maxNameRunes-len(extension), maxNameBytes-len(extension)), ". ")
	if first, _, _ := strings.Cut(strings.ToLower(base), "."); base == "" || reserved[strings.TrimSpace(first)] || isPort(first) {
		base = strings.TrimSuffix("file-"+base, "-")
	}
	return base + extension
}

// printable replaces a character that must not be in a name, or drops it.
func printable(r rune) rune {
	switch {
	case strings.ContainsRune(`<>:"|?*`, r):
		return '_'
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r == utf8.RuneError, r >= 0xfff0 && r <= 0xffff,
		unicode.Is(unicode.Variation_Selector, r), r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0':
		return -1 // also marks of direction, soft hyphens and joiners, which are of the category Cf
	}
	return r
}

// splitExtension separates an extension of the type, or adds the usual one.
func splitExtension(name, mediaType string) (base, extension string) {
	known := extensions[mediaType]
	lower := strings.ToLower(name)
	for _, e := range known {
		if strings.HasSuffix(lower, e) && len(lower) == len(name) {
			return name[:len(name)-len(e)], e
		}
	}
	return name, known[0]
}

// shorten cuts a text to a number of characters and bytes.
func shorten(text string, runes, bytes int) string {
	count := 0
	for at, r := range text {
		if count++; count > runes || at+utf8.RuneLen(r) > bytes {
			return text[:at]
		}
	}
	return text
}

// isPort reports whether Windows opens a name as a port: com1, lpt9.
func isPort(name string) bool {
	return len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")) && name[3] >= '0' && name[3] <= '9'
}

// disposition returns a header Content-Disposition that makes clients store the file (RFC 6266). Old clients read the name in ASCII.
func disposition(name string) string {
	var plain, encoded strings.Builder
	for _, r := range name {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			plain.WriteByte('_')
		} else {
			plain.WriteRune(r)
		}
	}
	const hex = "0123456789ABCDEF"
	for i := range len(name) {
		if c := name[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' {
			encoded.WriteByte(c)
		} else {
			encoded.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return `attachment; filename="` + plain.String() + `"; filename*=UTF-8''` + encoded.String()
}
