package testenv_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"kontor/store/testenv"
)

const childEnv = "KONTOR_TEST_CHILD"

// A process that Start has started survives the thread of the goroutine that asked for it, and ends when the test process is killed.
func TestStart_EndsWithTheTestProcess(t *testing.T) {
	if os.Getenv(childEnv) == "parent" {
		startAndHang(t)
		return
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestStart_EndsWithTheTestProcess$")
	parent.Env = append(os.Environ(), childEnv+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var pid int
	if _, scanned := fmt.Sscan(strings.TrimSpace(line), &pid); err != nil || scanned != nil {
		t.Fatalf("got %q, %v", line, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait() // it was killed
	testenv.Wait(t, "the end of the child", func() bool { return state(pid) == "" })
}

// startAndHang starts a child on behalf of a thread that ends, prints its process id once it has answered, and waits to be killed.
func startAndHang(t *testing.T) {
	t.Helper()
	main := make(chan struct{})
	for thread := os.Getpid(); thread == os.Getpid(); { // the main thread does not end
		child := exec.Command("cat")
		in, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan int)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			if err := testenv.Start(child); err != nil {
				t.Error(err)
			}
			id := syscall.Gettid()
			asked <- id
			if id == os.Getpid() {
				<-main
			}
		}()
		if thread = <-asked; thread == os.Getpid() {
			continue
		}
		testenv.Wait(t, "the end of the thread", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
			return err != nil
		})
		if _, err := io.WriteString(in, "alive\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("the child answered %q, %v", line, err)
		}
		fmt.Println(child.Process.Pid)
	}
	select {}
}

// state returns the state of a process, or "" for one that has ended.
func state(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if rest == "" || rest[0] == 'Z' {
		return ""
	}
	return rest[:1]
}
