package qrbill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kontor/modules/kit/sandbox"
)

// Kinds of workers. Only documents need the engine, which is slow to start and uses much memory.
const (
	documentWorker = "qrbill-document"
	pictureWorker  = "qrbill-picture"
)

// Serve does not return in a process that was started as a worker.
func init() {
	sandbox.Serve(documentWorker, func(args []string) (sandbox.Work, error) {
		e, err := newEngine(args[0])
		return worker{e}.work, err
	})
	sandbox.Serve(pictureWorker, func([]string) (sandbox.Work, error) { return worker{}.work, nil })
}

// job is the request to a worker about a file.
type job struct {
	Kind   string
	Page   int // as in Options
	Width  int // of a preview, in pixels; 0: search the file for codes
	Limits Limits
	Time   time.Duration
}

// outcome is the end of a worker's answer.
type outcome struct {
	// Unfinished reports that the time ended before all pages were searched.
	Unfinished bool
	// Reason is empty unless a page failed.
	Reason Reason
	Format string
	Detail string
	Pages  int // of the file, with a preview
}

// worker reads files in a worker process. engine is nil in a worker for pictures.
type worker struct{ engine *engine }

// work reads one file and sends each code at once.
func (w worker) work(request, file []byte, send func([]byte) error) ([]byte, error) {
	var j job
	if err := json.Unmarshal(request, &j); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	if j.Width > 0 {
		return w.preview(j, file, send)
	}
	end, err := w.search(j, file, func(code foundCode) error {
		part, err := json.Marshal(code)
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

// search searches a file. It returns only errors of report.
func (w worker) search(j job, file []byte, report func(foundCode) error) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), j.Time)
	defer cancel()
	src, err := open(file, j.Kind, w.engine, j.Limits)
	if err != nil {
		return outcomeOf(err), nil
	}
	defer src.close()
	first, last := 0, src.pages()
	switch {
	case j.Page > last:
		return outcomeOf(errorf(PageOutOfRange, "page %d of %d", j.Page, last)), nil
	case j.Page > 0:
		first, last = j.Page-1, j.Page
	case last > j.Limits.Pages:
		return outcomeOf(errorf(TooComplex, "%d pages", last)), nil
	}
	s := &search{source: src, report: report}
	if err := s.run(ctx, first, last); err != nil {
		return outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return outcome{Unfinished: true, Reason: TooComplex, Detail: err.Error()}, nil
	}
	return outcomeOf(s.failed), nil
}

// outcomeOf converts an error to an outcome. An error without a reason is one of the engine.
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

// err converts an outcome to an error.
func (o outcome) err() error {
	if o.Reason == "" {
		return nil
	}
	return &Error{Reason: o.Reason, Format: o.Format, cause: errors.New(o.Detail)}
}
