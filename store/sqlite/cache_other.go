//go:build !linux

package sqlite

import "os"

// dropPages does nothing: on this system only an administrator can drop cached pages.
func dropPages(*os.File) error { return nil }
