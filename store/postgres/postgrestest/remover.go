package postgrestest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// removal waits for the end of its input, then stops the server in $1, if it runs, and deletes the directory. It ignores the
// signals that a terminal sends to the tests, because it has to outlive them. The other arguments are the command that runs pg_ctl.
const removal = `
	trap '' INT TERM HUP QUIT
	cat >/dev/null
	dir=$1
	shift
	if [ -e "$dir/data/postmaster.pid" ]; then "$@" -D "$dir/data" -m immediate -w stop; fi
	rm -rf "$dir"`

// watch starts a process that removes the server as soon as the pipe to it is closed: by Close, or by the end of this
// process.
func (p *Instance) watch() error {
	bin, err := programs()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	line := append(append([]string{"-c", removal, "sh", p.dir}, slices.Clone(p.as)...), filepath.Join(bin, "pg_ctl"))
	p.remover = exec.Command("sh", line...)
	p.remover.Dir = os.TempDir()
	p.remover.Stdin = read
	if err := p.remover.Start(); err != nil {
		write.Close()
		return err
	}
	p.alive = write
	return nil
}

// Close stops the server, deletes its directory and returns when both are done.
func (p *Instance) Close() error {
	if err := p.alive.Close(); err != nil {
		return err
	}
	return p.remover.Wait()
}
