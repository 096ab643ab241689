package datadir

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Identity returns what identifies a file for its life: its number in the file system and when it was created. It stays the same
// when the file is renamed. A copy has another one. It is "" where the system does not say.
func Identity(path string) string {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return ""
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	file, err := windows.CreateFile(name, 0, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(file) //nolint:errcheck // nothing was written
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(file, &info) != nil {
		return ""
	}
	return fmt.Sprintf("%d-%d", uint64(info.FileIndexHigh)<<32|uint64(info.FileIndexLow), info.CreationTime.Nanoseconds())
}

// Mounted returns "": this system does not name the time since it was started.
func Mounted(string) string { return "" }
