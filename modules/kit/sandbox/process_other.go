//go:build !linux

package sandbox

import (
	"os"
	"syscall"
)

func executablePath() (string, error) { return os.Executable() }

// processAttributes returns nil: on this system a worker ends when it reads its next file and its parent has ended.
func processAttributes() *syscall.SysProcAttr { return nil }

// residentBytes returns 0, for unknown: on this system workers are replaced by their number of files only.
func residentBytes(int) int64 { return 0 }
