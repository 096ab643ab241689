package commands

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribeBuild(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.99", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-01-31T08:15:30Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := describeBuild("1.2.3", info); !strings.HasPrefix(got, "1.2.3 (commit 0123456789ab with changes, 2026-01-31T08:15:30Z, go1.99 ") {
		t.Errorf("got %q", got)
	}
	if got := describeBuild("", &debug.BuildInfo{GoVersion: "go1.99"}); !strings.HasPrefix(got, "development (go1.99 ") {
		t.Errorf("got %q", got)
	}
}
