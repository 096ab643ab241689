package commands

import (
	"bufio"
	"slices"
	"strings"
	"testing"
)

func TestUnchangedParts(t *testing.T) {
	const smaps = `00400000-01986000 r-xp 00000000 fe:00 1234                     /opt/my kontor/kontor
Size:              22040 kB
Anonymous:             0 kB
01986000-03310000 r--p 01586000 fe:00 1234                     /opt/my kontor/kontor
Anonymous:             0 kB
03310000-03320000 r--p 02f10000 fe:00 1234                     /opt/my kontor/kontor
Anonymous:             8 kB
03320000-03a9d000 rw-p 02f20000 fe:00 1234                     /opt/my kontor/kontor
Anonymous:             0 kB
7f3300000000-7f3300001000 r--p 00000000 00:00 0
Anonymous:             0 kB
7f33c4833000-7f33c4989000 r-xp 00026000 fe:00 99               /usr/lib/x86_64-linux-gnu/libc.so.6
Anonymous:             0 kB
7f33c5000000-7f33c5001000 r--s 00000000 fe:00 77               /opt/my kontor/kontor
Anonymous:             0 kB
`
	got := unchangedParts(bufio.NewScanner(strings.NewReader(smaps)), "/opt/my kontor/kontor")
	if want := []part{{0x400000, 0x1586000}, {0x1986000, 0x198a000}}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// The program runs on after its pages were given back.
func TestUnmapImage(t *testing.T) {
	unmapImage()
	if strings.Repeat("a", 3) != "aaa" {
		t.Error("the program does not run on")
	}
}
