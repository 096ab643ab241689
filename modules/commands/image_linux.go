package commands

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapImage gives back the pages of the executable that only the start has used. They stay in the system's cache, and the
// processor maps those that are used again, some microseconds each. Only parts of the file that were never changed in memory
// are given back.
func unmapImage() {
	path, err := os.Executable()
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, m := range unchangedParts(bufio.NewScanner(f), path) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.length, unix.MADV_DONTNEED) // a failure changes nothing
	}
}

// part is a part of the executable in memory.
type part struct{ start, length uintptr }

// unchangedParts returns the parts of a file that are mapped and cannot be written, without those that have pages of their own
// (relocated data).
func unchangedParts(smaps *bufio.Scanner, path string) []part {
	var parts []part
	var current part
	for smaps.Scan() {
		fields := strings.Fields(smaps.Text())
		switch {
		case len(fields) >= 6 && strings.Contains(fields[0], "-"):
			current = part{}
			if strings.Join(fields[5:], " ") == path && (fields[1] == "r-xp" || fields[1] == "r--p") {
				current = parsePart(fields[0])
			}
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && current.length > 0:
			parts = append(parts, current)
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			current = part{} // a mapping without a name
		}
	}
	return parts
}

// parsePart parses a range of addresses such as 00400000-01986000.
func parsePart(text string) part {
	from, to, _ := strings.Cut(text, "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err1 != nil || err2 != nil || end <= start {
		return part{}
	}
	return part{uintptr(start), uintptr(end - start)}
}
