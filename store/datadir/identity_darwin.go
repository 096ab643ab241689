package datadir

import (
	"fmt"
	"os"
	"syscall"
)

// Identity returns what identifies a file for its life: its number in the file system and when it was created. It stays the same
// when the file is renamed. A copy has another one. It is "" where the system does not say.
func Identity(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d-%d.%09d", s.Ino, s.Birthtimespec.Sec, s.Birthtimespec.Nsec)
}

// Mounted returns "": this system does not name the time since it was started.
func Mounted(string) string { return "" }
