package commands

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version, set by the linker: -ldflags "-X kontor/modules/commands.release=1.2.3".
var release string

// version returns the command that prints the version, as the flag --version of every command does.
func (l *commandLine) version() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version.", Example: "kontor version", Args: arguments(), RunE: func(*cobra.Command, []string) error {
		_, err := fmt.Fprintln(l.process.Stdout, "kontor", Version())
		return err
	}}
}

// Version describes this build, for example "1.2.3 (commit 1a2b3c4d5e6f, 2026-01-31T08:15:30Z, go1.26.8 linux/amd64)".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return describeBuild(release, info)
}

const shownCommit = 12 // digits of a commit's hash

func describeBuild(release string, info *debug.BuildInfo) string {
	var commit, when, changed string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), shownCommit)]
		case s.Key == "vcs.time":
			when = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if release == "" {
		release = "development"
	}
	text := release + " ("
	if commit != "" {
		text += "commit " + commit + changed + ", " + when + ", "
	}
	return text + info.GoVersion + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
