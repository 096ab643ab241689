// Package sandbox runs work on hostile files in child processes of the same executable.
//
// A worker is such a child. It prepares itself while nothing untrusted has reached it, gives up what it does not need
// (environment, descriptors, files, network, the right to start programs, memory beyond a limit), and then serves one
// file at a time over its standard input and output. A [Pool] keeps a few workers warm, kills one that exceeds its
// deadline or its processor time, and replaces it. Whatever a file does to a worker, the process that asked goes on.
//
// A package that has such work registers it with [Serve] from an init function, so that every program that links the
// package can act as its own worker: the server, the tests, and other programs that use the package as a library.
//
// What is guaranteed depends on the system. Linux on amd64 and arm64 has all of it, and a worker that cannot confine
// itself there does not start. Other systems have separate processes, the empty environment and the deadline only.
package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// command is the hidden command that makes the executable a worker: "kontor file-worker KIND ARGUMENTS…".
const command = "file-worker"

// Work is what a worker does with one file. It may send parts of its answer before it returns the last one; the caller
// has them even if the worker does not survive the file. An error or a panic ends the worker.
type Work func(request, file []byte, send func(part []byte) error) (answer []byte, err error)

// Config says what the workers of a Pool do and what they may take. All fields without a default are required.
type Config struct {
	Kind string   // as given to Serve
	Args []string // for the preparation of each worker
	// Memory is how many bytes of data a worker may take for a file, beside what it has after its preparation.
	Memory int64
	// Resident is the memory in bytes above which a worker is replaced after a file.
	Resident int64
	// MaxAnswer is the size of the largest part of an answer in bytes. A worker that sends more is killed.
	MaxAnswer int
	// Jobs is how many files a worker serves before it is replaced; 0 means 100.
	Jobs int
	// Idle is how long a worker waits for a file before it ends; 0 means a minute.
	Idle time.Duration
}

const (
	defaultJobs = 100
	defaultIdle = time.Minute

	// startLimit ends a worker that does not become ready. The first one of all may have to compile.
	startLimit = 3 * time.Minute
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

// Failure says how a worker ended.
type Failure string

// The ways in which a worker ends before it has answered.
const (
	OutOfTime   Failure = "out of processor time" // the file took more than LimitCPU allowed
	OutOfMemory Failure = "out of memory"         // the file needed more than Config.Memory
	Crashed     Failure = "crashed"               // the worker failed over the file
	Killed      Failure = "killed"                // something else killed the worker; the file is not to blame
)

// CrashError is the error for a worker that ended while it worked on a file.
type CrashError struct {
	Failure Failure
	Detail  string // what the worker wrote last, for the log
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("the worker ended: %s: %s", e.Failure, e.Detail)
}

// ErrClosed is the error of a closed Pool.
var ErrClosed = errors.New("the pool of workers is closed")
