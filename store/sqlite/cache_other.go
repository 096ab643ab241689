//go:build !linux

package sqlite

import "os"

// dropPages does nothing: this system has no way to forget cached pages that does without the rights of an administrator.
func dropPages(*os.File) error { return nil }
