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

// settle is how long a worker waits after a file before it returns memory to the system.
const settle = 500 * time.Millisecond

// Exit codes of a worker. The Go runtime uses 2 for panics and when it is out of memory.
const (
	exitFailed    = 3
	exitOutOfTime = 4
)

// Serve makes the process a worker of a kind if it was started as one, and then never returns. Otherwise it does
// nothing. Call it from an init function: the less has been set up in a worker, the less there is to give up.
//
// prepare runs before the worker is confined. It may read files; nothing untrusted has reached the process then.
func Serve(kind string, prepare func(args []string) (Work, error)) {
	if len(os.Args) < workerArguments || os.Args[1] != command || os.Args[2] != kind {
		return
	}
	memory, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err == nil {
		ended := make(chan error)
		// The goroutine of init functions is bound to its thread, which makes each change between goroutines dear.
		go func() {
			ended <- serve(memory, func() (Work, error) { return prepare(os.Args[workerArguments:]) })
		}()
		err = <-ended
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

// workerArguments are the name of the program, the command, the kind and the limit of memory.
const workerArguments = 4

func serve(memory int64, prepare func() (Work, error)) error {
	closeInherited()
	if err := lowerPriority(); err != nil {
		return err
	}
	// One processor for Go code: a worker takes one core, its garbage collection included.
	runtime.GOMAXPROCS(1)
	work, err := prepare()
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	// The garbage of one picture must not stay until there is as much of the next.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(memory / 2)
	debug.FreeOSMemory()
	// The first timer opens descriptors of the Go runtime, which is not possible later.
	tidy := time.AfterFunc(settle, debug.FreeOSMemory)
	if err := confine(memory); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	if err := writeFrame(os.Stdout, frameReady, nil); err != nil {
		return err
	}
	for {
		err := serveOne(work, tidy)
		if errors.Is(err, io.EOF) { // nobody wants anything any more
			return nil
		}
		if err != nil {
			return err
		}
		if heapHeld() > keepHeap {
			debug.FreeOSMemory()
			continue
		}
		tidy.Reset(settle)
	}
}

// keepHeap is how much of its heap a worker keeps for the next file. Above that it first returns what it can.
const keepHeap = 48 << 20

// heapHeld is the heap that the worker holds, garbage included.
func heapHeld() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys - m.HeapReleased
}

// serveOne reads one file, works on it and writes the answer.
func serveOne(work Work, tidy *time.Timer) error {
	request, err := expectFrame(os.Stdin, frameRequest, maxRequest)
	if err != nil {
		return err
	}
	tidy.Stop()
	file, err := expectFrame(os.Stdin, frameFile, maxFile)
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	answer, err := work(request, file, func(part []byte) error { return writeFrame(os.Stdout, framePart, part) })
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	return writeFrame(os.Stdout, frameAnswer, answer)
}
