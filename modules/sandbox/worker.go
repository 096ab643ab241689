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

// worker is a child process, seen from its parent.
type worker struct {
	config  Config
	command *exec.Cmd
	in, out *os.File    // our ends of its standard input and output
	said    firstOutput // on its standard error
	jobs    int
	idle    *time.Timer
	ended   chan struct{} // closed when the process is gone and everything of it is released
}

// launch starts a process. It prepares itself until [worker.awaitReady] returns.
func launch(config Config) (*worker, error) {
	w := &worker{config: config, ended: make(chan struct{})}
	started := make(chan error)
	go w.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return w, nil
}

// awaitReady waits until the worker is confined. An error means that it is gone.
func (w *worker) awaitReady() error {
	slow := time.AfterFunc(detectorCost*startLimit, w.kill)
	defer slow.Stop()
	if _, err := expectFrame(w.out, frameReady, 0); err != nil {
		w.end()
		return fmt.Errorf("start worker: %w: %s", err, w.said.String())
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

// run starts the process and waits for its end. All of that happens on one thread: Linux ends a child whose death is
// bound to that of its parent when the thread that started it ends.
func (w *worker) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(w.ended)
	err := w.start()
	started <- err
	if err == nil {
		_ = w.command.Wait() // the state says how it ended
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
		Path:  executable,
		Args:  append([]string{"kontor", command, w.config.Kind, strconv.FormatInt(w.config.Memory, 10)}, w.config.Args...),
		Env:   []string{}, // none of ours: it has secrets
		Stdin: childIn, Stdout: childOut, Stderr: &w.said,
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

// kill ends the process at once. It may be called at any time and more than once. The system call filter of a worker
// keeps it from having children, so that there is nothing else to end.
func (w *worker) kill() { _ = w.command.Process.Kill() }

// end kills the process and waits until it is gone.
func (w *worker) end() {
	w.kill()
	<-w.ended
	w.closePipes()
}

// serve has the worker answer one request. An error of any kind means that the worker is gone.
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
	if ending && w.endsItself() {
		w.closePipes()
		return nil, &CrashError{failureOf(w.command.ProcessState, w.said.String()), w.said.String()}
	}
	w.end() // it talks nonsense, or too much
	return nil, &CrashError{Crashed, err.Error()}
}

// exitDelay is how long a process may take from closing its output to its end.
const exitDelay = 5 * time.Second

// endsItself reports whether the process ends without help.
func (w *worker) endsItself() bool {
	timer := time.NewTimer(exitDelay)
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
			return nil, fmt.Errorf("a frame of type %q", kind)
		}
		if err := part(payload); err != nil {
			return nil, err
		}
	}
}

// worn reports whether the worker should be replaced before the next file.
func (w *worker) worn() bool {
	return w.jobs >= w.config.Jobs || residentBytes(w.command.Process.Pid) > w.config.Resident
}

// firstOutput keeps the beginning of what a worker writes to standard error: the cause stands before the trace.
type firstOutput struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

const firstOutputBytes = 256

func (o *firstOutput) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.text.Write(p[:min(len(p), firstOutputBytes-o.text.Len())])
	return len(p), nil
}

func (o *firstOutput) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}
