package datadir

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Identity returns what identifies a file for its life: its number in the file system and when it was created. It stays the same
// when the file is renamed, and after a restart of the machine. A copy has another one. It is "" where the system does not say, and
// in file systems that number files again with each mount.
func Identity(path string) string {
	s, err := stat(path)
	if err != nil || s.Ino == 0 || numbersAgain(path) {
		return ""
	}
	if s.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprint(s.Ino)
	}
	return fmt.Sprintf("%d-%d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}

// numbersAgain reports whether a file may have another number after the next mount: shares of other machines, and file systems of
// programs.
func numbersAgain(path string) bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return true
	}
	switch uint32(fs.Type) {
	case unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return true
	}
	return false
}

// Mounted returns what identifies a file among all that the machine has mounted since it was started, also among snapshots, whose
// files have one Identity. It is "" where the system does not say.
func Mounted(path string) string {
	s, err := stat(path)
	boot, bootErr := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || bootErr != nil || s.Ino == 0 {
		return ""
	}
	return fmt.Sprintf("%s-%d:%d-%d", strings.TrimSpace(string(boot)), s.Dev_major, s.Dev_minor, s.Ino)
}

func stat(path string) (s unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s)
	return s, err
}
