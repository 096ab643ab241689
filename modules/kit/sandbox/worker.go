package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// worker is the parent's view of a child process.
type worker struct {
	config  Config
	command *exec.Cmd
	in, out *os.File   // the parent's ends of its standard input and output
	stderr  headWriter // its standard error
	jobs    int
	idle    *time.Timer
	ended   chan struct{} // closed when the process has ended and its resources are released
}

// launch starts a process. Call [worker.awaitReady] to wait until it is prepared.
func launch(config Config) (*worker, error) {
	w := &worker{config: config, ended: make(chan struct{})}
	started := make(chan error)
	go w.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return w, nil
}

// awaitReady waits until the worker is confined. After an error, the worker has ended.
func (w *worker) awaitReady() error {
	timeout := time.AfterFunc(raceFactor*startTimeout, w.kill)
	defer timeout.Stop()
	if _, err := expectFrame(w.out, frameReady, 0); err != nil {
		w.end()
		return fmt.Errorf("start worker: %w: %s", err, w.stderr.String())
	}
	return nil
}

// isGone reports whether the process has ended.
func (w *worker) isGone() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// run starts the process and waits for its end, on one thread. Linux sends the parent-death signal when the thread that
// started the child ends.
func (w *worker) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(w.ended)
	err := w.start()
	started <- err
	if err == nil {
		_ = w.command.Wait() // ProcessState holds the result
	}
}

func (w *worker) start() error {
	executable, err := executablePath()
	if err != nil {
		return err
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer childOut.Close()
	w.in, w.out = in, out
	w.command = &exec.Cmd{
		Path: executable,
		Args: append([]string{"kontor", command, w.config.Kind, strconv.FormatInt(w.config.Memory, 10), strconv.Itoa(int(w.config.Priority))},
			w.config.Args...),
		Env:   []string{}, // the environment of the parent holds secrets
		Stdin: childIn, Stdout: childOut, Stderr: &w.stderr,
		SysProcAttr: processAttributes(),
	}
	if err := w.command.Start(); err != nil {
		w.closePipes()
		return err
	}
	return nil
}

func (w *worker) closePipes() {
	w.in.Close()
	w.out.Close()
}

// kill ends the process at once. It may be called at any time and repeatedly. The process has no children, because the
// system call filter does not allow any.
func (w *worker) kill() { _ = w.command.Process.Kill() }

// end kills the process and waits until it has ended.
func (w *worker) end() {
	w.kill()
	<-w.ended
	w.closePipes()
}

// serve sends one request to the worker and returns its answer. After any error, the worker has ended.
func (w *worker) serve(ctx context.Context, request, file []byte, part func([]byte) error) ([]byte, error) {
	w.jobs++
	stop := context.AfterFunc(ctx, w.kill)
	answer, err := w.exchange(request, file, part)
	if stop() && err == nil {
		return answer, nil
	}
	if ctx.Err() != nil {
		w.end()
		return nil, ctx.Err()
	}
	ending := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE)
	if ending && w.awaitExit() {
		w.closePipes()
		return nil, &CrashError{failureOf(w.command.ProcessState, w.stderr.String()), w.stderr.String()}
	}
	w.end() // its output is invalid or too large
	return nil, &CrashError{Crashed, err.Error()}
}

// exitTimeout is the maximum time between the moment when a process closes its output and its end.
const exitTimeout = 5 * time.Second

// awaitExit waits for the end of the process and reports whether it ended in time.
func (w *worker) awaitExit() bool {
	timer := time.NewTimer(exitTimeout)
	defer timer.Stop()
	select {
	case <-w.ended:
		return true
	case <-timer.C:
		return false
	}
}

func (w *worker) exchange(request, file []byte, part func([]byte) error) ([]byte, error) {
	if err := writeFrame(w.in, frameRequest, request); err != nil {
		return nil, err
	}
	if err := writeFrame(w.in, frameFile, file); err != nil {
		return nil, err
	}
	for {
		kind, payload, err := readFrame(w.out, w.config.MaxAnswer)
		switch {
		case err != nil:
			return nil, err
		case kind == frameAnswer:
			return payload, nil
		case kind != framePart:
			return nil, fmt.Errorf("unexpected frame of type %q", kind)
		}
		if err := part(payload); err != nil {
			return nil, err
		}
	}
}

// needsReplacement reports whether the worker should be replaced before the next file.
func (w *worker) needsReplacement() bool {
	return w.jobs >= w.config.Jobs || residentBytes(w.command.Process.Pid) > w.config.Resident
}

// headWriter keeps the beginning of its input: a crash report starts with the cause, before the stack trace.
type headWriter struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

const headBytes = 256

func (w *headWriter) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.text.Write(p[:min(len(p), headBytes-w.text.Len())])
	return len(p), nil
}

func (w *headWriter) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.String()
}
