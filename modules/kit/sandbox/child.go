package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

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
