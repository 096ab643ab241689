package invoices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/server/endpoint"
)

// FileAnswer is the result of ReadFiles for one file: the bill, or the error.
type FileAnswer struct {
	File   string     `json:"file"`
	QRInfo *QRInfo    `json:"qr_info,omitzero"`
	Error  *FileError `json:"error,omitzero"`
}

// FileError is the reason why no bill was read from a file.
type FileError struct {
	Reason     string    `json:"reason"`
	Message    string    `json:"message"`
	Violations []Warning `json:"violations,omitzero"`
}

// ErrFilesFailed reports that no bill was read from at least one file.
var ErrFilesFailed = errors.New("some files contain no readable bill; see their lines of output")

// ReadFiles reads bills from files and writes one line of JSON per file. The name "-" stands for in. It implements the command "kontor qrbill". It
// returns ErrFilesFailed when no bill was read from some file; the line of that file states the reason.
func ReadFiles(ctx context.Context, reader *qrbill.Reader, texts endpoint.Texts, in io.Reader, out io.Writer, options qrbill.Options, names ...string) error {
	service, failed := &Service{reader: reader, texts: texts}, false
	for _, name := range names {
		answer := service.readFile(ctx, in, name, options)
		failed = failed || answer.Error != nil
		if err := json.MarshalWrite(out, answer, json.Deterministic(true), jsontext.EscapeForHTML(false)); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		if _, err := io.WriteString(out, "\n"); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if failed {
		return ErrFilesFailed
	}
	return nil
}

const commandLanguage = "en"

func (s *Service) readFile(ctx context.Context, in io.Reader, name string, options qrbill.Options) FileAnswer {
	file, err := loadFile(in, name, s.reader.MaxBytes())
	if err == nil {
		var result *qrbill.Result
		if result, err = s.reader.Read(ctx, file, options); err == nil {
			info := newQRInfo(result, func(w Warning) string { return s.describe(commandLanguage, w) })
			return FileAnswer{File: name, QRInfo: &info}
		}
	}
	answer := FileAnswer{File: name, Error: &FileError{Reason: "unreadable", Message: err.Error()}}
	if problem, ok := errors.AsType[*qrbill.Error](err); ok {
		answer.Error.Reason = string(problem.Reason)
		answer.Error.Message = s.explain(commandLanguage, problem.Reason, problem.Format)
		for _, f := range problem.Findings {
			w := findingWarning(f)
			w.Message = s.describe(commandLanguage, w)
			answer.Error.Violations = append(answer.Error.Violations, w)
		}
	}
	return answer
}

// loadFile reads a file, or in where the name is "-". It reads not much more than the reader accepts.
func loadFile(in io.Reader, name string, maxBytes int) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(in, int64(maxBytes)+1))
	}
	f, err := os.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(maxBytes)+1)) // with one byte more, the reader rejects the file
}
