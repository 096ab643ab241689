//go:build !linux

package commands

// unmapImage does nothing: the system decides which pages of the executable stay in memory.
func unmapImage() {}
