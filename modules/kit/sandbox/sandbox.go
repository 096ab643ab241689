// Package sandbox processes untrusted files in child processes of the same executable. Passwords are hashed in such processes, too,
// because these have a priority of their own.
//
// Such a child is a worker. It initialises itself before it receives untrusted input. It then drops its privileges:
// environment, descriptors, access to files and the network, the right to start programs, and memory beyond a limit. After
// that it processes one file at a time, over its standard input and output. A [Pool] keeps idle workers, and replaces a
// worker that exceeds its deadline or its processor time. A malicious file can crash its worker, but not the parent process.
//
// A package registers its work with [Serve] in an init function. Every program that links the package can then run itself
// as a worker: the server, the tests, and programs that use the package as a library.
//
// The guarantees depend on the system. On Linux for amd64 and arm64 all of the above holds, and a worker that cannot
// confine itself does not start. Other systems have only separate processes, an empty environment and the deadline.
package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// command is the hidden command that runs the executable as a worker: "kontor worker KIND ARGUMENTS…".
const command = "worker"

// Work processes one file. It may send parts of its answer before it returns the last part. The caller receives these parts
// even if the worker crashes later. An error or a panic ends the worker.
type Work func(request, file []byte, send func(part []byte) error) (answer []byte, err error)

// Config configures the workers of a Pool. Fields without a default are required.
type Config struct {
	Kind string   // the kind that was passed to Serve
	Args []string // arguments of the prepare function of each worker
	// Priority is the one with which the kernel runs a worker. It counts where [Confines] is set.
	Priority Priority
	// Memory is how many bytes of data a worker may allocate for a file, in addition to its memory after the preparation.
	Memory int64
	// Resident is the resident memory in bytes above which a worker is replaced after a file.
	Resident int64
	// MaxAnswer is the maximum size of a part of an answer in bytes. A worker that sends more is killed.
	MaxAnswer int
	// Jobs is the number of files after which a worker is replaced; 0 means 100.
	Jobs int
	// Idle is the time after which an idle worker is ended; 0 means one minute.
	Idle time.Duration
}

// Priority is the share of the processor that a worker receives beside other processes.
type Priority int

// The priorities. While processes of normal priority use a core fully, a worker receives a quarter or a tenth of it.
const (
	Low    Priority = iota // files do not delay other requests
	Lowest                 // niceness 10
	Normal                 // that of the server
)

const (
	defaultJobs = 100
	defaultIdle = time.Minute

	// startTimeout is long, because the first worker of all may have to compile the PDF engine.
	startTimeout = 3 * time.Minute
)

func (c Config) withDefaults() Config {
	if c.Jobs <= 0 {
		c.Jobs = defaultJobs
	}
	if c.Idle <= 0 {
		c.Idle = defaultIdle
	}
	return c
}

// Failure is the way in which a worker failed.
type Failure string

// The failures of a worker.
const (
	OutOfTime   Failure = "out of processor time" // the file exceeded the limit of LimitCPU
	OutOfMemory Failure = "out of memory"         // the file exceeded Config.Memory
	Crashed     Failure = "crashed"               // the worker failed because of the file
	Killed      Failure = "killed"                // another process killed the worker; the file is not the cause
)

// CrashError reports a worker that ended while it processed a file.
type CrashError struct {
	Failure Failure
	Detail  string // the worker's error output, for the log
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("the worker ended: %s: %s", e.Failure, e.Detail)
}

// ErrClosed is returned by a closed Pool.
var ErrClosed = errors.New("the pool of workers is closed")

// releaseDelay is the time after a file at which a worker returns memory to the system.
const releaseDelay = 500 * time.Millisecond

// Exit codes of a worker. The Go runtime uses 2 for panics and when it is out of memory.
const (
	exitFailed    = 3
	exitOutOfTime = 4
)

// Serve runs the process as a worker of a kind if it was started as one, and does not return then. Otherwise it does
// nothing. Call it from an init function, so that little else has been initialised in a worker.
//
// prepare runs before the worker is confined and before it receives untrusted input. It may read files.
func Serve(kind string, prepare func(args []string) (Work, error)) {
	if len(os.Args) < workerArguments || os.Args[1] != command || os.Args[2] != kind {
		return
	}
	memory, err := strconv.ParseInt(os.Args[3], 10, 64)
	priority, priorityErr := strconv.Atoi(os.Args[4])
	if err = errors.Join(err, priorityErr); err == nil {
		ended := make(chan error)
		// The goroutine of init functions is locked to its thread, which makes switching goroutines expensive.
		go func() {
			ended <- serve(memory, Priority(priority), func() (Work, error) { return prepare(os.Args[workerArguments:]) })
		}()
		err = <-ended
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

// workerArguments is the number of fixed arguments: the name of the program, the command, the kind, the memory limit and the priority.
const workerArguments = 5

func serve(memory int64, priority Priority, prepare func() (Work, error)) error {
	closeInherited()
	if err := priority.apply(); err != nil {
		return err
	}
	// A worker uses one core, including its garbage collection.
	runtime.GOMAXPROCS(1)
	work, err := prepare()
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	// The default of 100 would keep the garbage of one picture until the next one has allocated as much.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(memory / 2)
	debug.FreeOSMemory()
	// The first timer opens descriptors of the Go runtime, which is not possible after confine.
	release := time.AfterFunc(releaseDelay, debug.FreeOSMemory)
	if err := confine(memory); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	if err := writeFrame(os.Stdout, frameReady, nil); err != nil {
		return err
	}
	for {
		err := serveOne(work, release)
		if errors.Is(err, io.EOF) { // the parent closed the pipe
			return nil
		}
		if err != nil {
			return err
		}
		if heapBytes() > maxIdleHeap {
			debug.FreeOSMemory()
			continue
		}
		release.Reset(releaseDelay)
	}
}

// maxIdleHeap is the heap that a worker may keep for the next file. Above it, the worker releases memory at once.
const maxIdleHeap = 48 << 20

// heapBytes returns the size of the heap, including garbage.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys - m.HeapReleased
}

// serveOne reads one file, processes it and writes the answer.
func serveOne(work Work, release *time.Timer) error {
	request, err := expectFrame(os.Stdin, frameRequest, maxRequest)
	if err != nil {
		return err
	}
	release.Stop()
	file, err := expectFrame(os.Stdin, frameFile, maxFile)
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	// Passwords and files of customers must not remain in the memory of an idle worker.
	defer clear(file)
	defer clear(request)
	answer, err := work(request, file, func(part []byte) error { return writeFrame(os.Stdout, framePart, part) })
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	return writeFrame(os.Stdout, frameAnswer, answer)
}

// Parent and worker exchange frames: one byte for the type, four big-endian bytes for the length, and the payload.
const (
	frameRequest = 'q' // to the worker: the request about the file that follows
	frameFile    = 'f' // to the worker: the file
	frameReady   = 'r' // from the worker: it is confined and waits for a file
	framePart    = 'p' // from the worker: a part of the answer
	frameAnswer  = 'a' // from the worker: the last part

	frameHeader = 5

	maxRequest = 1 << 20
	maxFile    = 1 << 30 // far above every limit on uploads
)

func writeFrame(w io.Writer, kind byte, payload []byte) error {
	header := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	if _, err := w.Write(header); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// readFrame reads a frame of at most limit bytes.
func readFrame(r io.Reader, limit int) (kind byte, payload []byte, err error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if int64(length) > int64(limit) {
		return 0, nil, fmt.Errorf("frame of %d bytes exceeds the limit of %d", length, limit)
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	return header[0], payload, nil
}

// expectFrame reads a frame of one kind.
func expectFrame(r io.Reader, want byte, limit int) ([]byte, error) {
	kind, payload, err := readFrame(r, limit)
	if err == nil && kind != want {
		err = fmt.Errorf("frame of type %q, want %q", kind, want)
	}
	return payload, err
}

// failureOfExit returns the failure of a worker that exited, as opposed to one that a signal ended.
func failureOfExit(state *os.ProcessState, output string) Failure {
	switch {
	case state.ExitCode() == exitOutOfTime:
		return OutOfTime
	case strings.Contains(output, "out of memory"), strings.Contains(output, "allocate"): // the latter is a message of the race detector
		return OutOfMemory
	}
	return Crashed
}
