// Kontor is a banking platform in one executable. This file connects package commands to the process: its arguments,
// environment, standard streams and signals.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kontor/modules/commands"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it, so that the process outlives its terminal
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(commands.Run(ctx, commands.Process{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
	}))
}
