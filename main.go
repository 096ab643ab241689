// Kontor is a banking platform in one executable. This file only hands over; modules/commands does the rest.
package main

import (
	"os"

	"kontor/modules/commands"
)

func main() {
	os.Exit(commands.Run(commands.Process{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
	}))
}
