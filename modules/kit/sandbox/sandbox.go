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
	"errors"
	"fmt"
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
