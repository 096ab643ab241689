package commands

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	const gib = 1 << 30
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := file("MemFree: 1 kB\nMemTotal:       4194304 kB\n")
	for name, c := range map[string]struct {
		root fstest.MapFS
		of   float64
	}{
		"nothing known":   {fstest.MapFS{}, 0},
		"machine":         {fstest.MapFS{"proc/meminfo": meminfo}, 4 * gib},
		"not readable":    {fstest.MapFS{"proc/meminfo": file("MemTotal: many kB\n")}, 0},
		"container":       {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, gib},
		"no limit":        {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, 4 * gib},
		"own group":       {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("1073741824\n"), "sys/fs/cgroup/a/memory.max": file("2147483648\n")}, gib},
		"group above":     {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("2147483648\n")}, 2 * gib},
		"version 1":       {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("9:cpu:/x\n8:memory:/a\nbroken\n"), "sys/fs/cgroup/memory/a/memory.limit_in_bytes": file("1073741824\n")}, gib},
		"version 1, none": {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 4 * gib},
	} {
		if got, want := memoryLimit(c.root), int64(c.of*memoryShare); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
