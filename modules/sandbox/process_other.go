//go:build !linux

package sandbox

import (
	"os"
	"syscall"
)

func executablePath() (string, error) { return os.Executable() }

// processAttributes asks for nothing: a worker whose parent is gone ends when it reads its next file.
func processAttributes() *syscall.SysProcAttr { return nil }

// residentBytes is unknown here: workers are replaced by the number of their files.
func residentBytes(int) int64 { return 0 }
