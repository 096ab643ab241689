//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kontor/store/testenv"
)

// attempts are actions of a compromised worker. The file of the request is the argument.
var attempts = map[string]func(argument string) error{
	"open a file":          func(name string) error { _, err := os.ReadFile(name); return err },
	"write a file":         func(name string) error { return os.WriteFile(name+".new", []byte("x"), 0o600) },
	"list a directory":     func(string) error { _, err := os.ReadDir("/"); return err },
	"remove a file":        func(name string) error { return os.Remove(name) },
	"connect":              func(string) error { _, err := net.Dial("tcp", "127.0.0.1:1"); return err },
	"listen":               func(string) error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err },
	"create a unix socket": func(string) error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
	"create a pipe":        func(string) error { return unix.Pipe2(make([]int, 2), 0) },
	"create a memory file": func(string) error { _, err := unix.MemfdCreate("x", 0); return err },
	"start a program":      func(string) error { return exec.Command("/bin/true").Run() },
	"exec a program":       func(string) error { return unix.Exec("/bin/true", []string{"true"}, nil) },
	"fork":                 func(string) error { return errnoOf(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) },
	"clone3":               func(string) error { return errnoOf(unix.SYS_CLONE3, 0) },
	"signal its parent":    func(string) error { return unix.Kill(os.Getppid(), unix.SIGTERM) },
	"signal a thread of its parent": func(string) error {
		return unix.Tgkill(os.Getppid(), os.Getppid(), unix.SIGTERM)
	},
	"limit its parent": func(string) error {
		return unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil)
	},
	"read its parent's memory": func(string) error {
		return errnoOf(unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid()))
	},
	"trace its parent": func(string) error { return unix.PtraceAttach(os.Getppid()) },
	"map executable memory": func(string) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_EXEC|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	},
	"make memory executable": makeExecutable,
	"set up io_uring":        func(string) error { return errnoOf(unix.SYS_IO_URING_SETUP, 1) },
	"load a BPF program":     func(string) error { return errnoOf(unix.SYS_BPF, 0) },
	"create a namespace":     func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"mount":                  func(string) error { return unix.Mount("none", "/", "tmpfs", 0, "") },
	"raise its limits":       func(string) error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}) },
	"change the user":        func(string) error { return errnoOf(unix.SYS_SETUID, 0) },
	"read /proc/self":        func(string) error { _, err := os.ReadFile("/proc/self/environ"); return err },
}

func errnoOf(number, argument uintptr) error {
	if _, _, e := unix.RawSyscall6(number, argument, 0, 0, 0, 0, 0); e != 0 {
		return e
	}
	return nil
}

func makeExecutable(string) error {
	region, err := unix.Mmap(-1, 0, 4096, unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return errors.New("no memory for the attempt")
	}
	return unix.Mprotect(region, unix.PROT_EXEC)
}

func init() {
	for name, attempt := range attempts {
		jobs[name] = func(_, file []byte, _ func([]byte) error) ([]byte, error) {
			return fmt.Append(nil, attempt(string(file))), nil
		}
	}
	jobs["read a descriptor"] = func(_, file []byte, _ func([]byte) error) ([]byte, error) {
		fd, err := strconv.Atoi(string(file))
		if err != nil {
			return nil, err
		}
		n, err := unix.Read(fd, make([]byte, 1))
		return fmt.Append(nil, n, " ", err), nil
	}
}

func TestWorker_DropsItsPrivileges(t *testing.T) {
	pool := newPool(t, nil)
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name := range attempts {
		got := answer(t, pool, name, secret)
		if !strings.Contains(got, "operation not permitted") && !strings.Contains(got, "function not implemented") {
			t.Errorf("%s: got %q, want EPERM or ENOSYS", name, got)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

func TestWorker_InheritsNothing(t *testing.T) {
	t.Setenv("KONTOR_SECRET_KEY", "secret")
	name := t.TempDir() + "/secret"
	if err := os.WriteFile(name, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	inherited, err := unix.Open(name, unix.O_RDONLY, 0) // without close-on-exec, as a descriptor from a service manager
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	pool := newPool(t, nil)
	if got := answer(t, pool, "environment", ""); got != "" {
		t.Errorf("its environment is %q", got)
	}
	if got := answer(t, pool, "read a descriptor", strconv.Itoa(inherited)); got != "-1 bad file descriptor" {
		t.Errorf("reading the parent's descriptor %d: %s", inherited, got)
	}
}

// awaitEnd waits until a process has ended.
func awaitEnd(t testing.TB, pid string) {
	t.Helper()
	id, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(id, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	timeout := int(testenv.Limit().Milliseconds())
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, timeout)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Errorf("process %s has not ended: %v", pid, err)
		}
		return
	}
}
