package qrbill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kontor/modules/sandbox"
)

// Kinds of workers. Only documents need the engine, which takes time to start and memory to keep.
const (
	documentWorker = "qrbill-document"
	pictureWorker  = "qrbill-picture"
)

// A process that was started as a worker goes no further than this.
func init() {
	sandbox.Serve(documentWorker, func(args []string) (sandbox.Work, error) {
		e, err := newEngine(args[0])
		return worker{e}.work, err
	})
	sandbox.Serve(pictureWorker, func([]string) (sandbox.Work, error) { return worker{}.work, nil })
}

// order is what a worker is told about a file.
type order struct {
	Kind   string
	Page   int // as in Options
	Limits Limits
	Left   time.Duration // of Limits.Time
}

// outcome is the end of a worker's answer: how the search went.
type outcome struct {
	// Unfinished says that the search ended before all pages had been looked at.
	Unfinished bool
	// Reason is empty when nothing failed.
	Reason Reason
	Format string
	Detail string
}

// worker reads files inside a worker process. A document needs an engine.
type worker struct{ engine *engine }

// work reads one file and reports each code when it is found.
func (w worker) work(request, file []byte, send func([]byte) error) ([]byte, error) {
	var o order
	if err := json.Unmarshal(request, &o); err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	end, err := w.search(o, file, func(s sighting) error {
		part, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return send(part)
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(end)
}

// search goes through a file. The error is one of report.
func (w worker) search(o order, file []byte, report func(sighting) error) (outcome, error) {
	deadline, cancel := context.WithTimeout(context.Background(), o.Left)
	defer cancel()
	src, err := open(file, o.Kind, w.engine, o.Limits)
	if err != nil {
		return outcomeOf(err), nil
	}
	defer src.close()
	first, last := 0, src.pages()
	switch {
	case o.Page > last:
		return outcomeOf(because(PageOutOfRange, "page %d of %d", o.Page, last)), nil
	case o.Page > 0:
		first, last = o.Page-1, o.Page
	case last > o.Limits.Pages:
		return outcomeOf(because(TooComplex, "%d pages", last)), nil
	}
	s := &search{source: src, deadline: deadline, report: report}
	if err := s.run(first, last); err != nil {
		return outcome{}, err
	}
	if err := deadline.Err(); err != nil {
		return outcome{Unfinished: true, Reason: TooComplex, Detail: err.Error()}, nil
	}
	return outcomeOf(s.failed), nil
}

// outcomeOf says what failed. An error without a reason is one of the engine.
func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{}
	}
	o := outcome{Reason: DamagedFile, Detail: err.Error()}
	if problem, ok := errors.AsType[*Error](err); ok {
		o.Reason, o.Format = problem.Reason, problem.Format
		if problem.cause != nil {
			o.Detail = problem.cause.Error()
		}
	}
	return o
}

// err makes the error again.
func (o outcome) err() error {
	if o.Reason == "" {
		return nil
	}
	return &Error{Reason: o.Reason, Format: o.Format, cause: errors.New(o.Detail)}
}
