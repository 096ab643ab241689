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

	"kontor/modules/invoices/qrbill"
	"kontor/server/endpoint"
)

// FileAnswer is what ReadFiles says about one file: the bill, or the error.
type FileAnswer struct {
	File   string     `json:"file"`
	QRInfo *QRInfo    `json:"qr_info,omitzero"`
	Error  *FileError `json:"error,omitzero"`
}

// FileError is why a file gave no bill.
type FileError struct {
	Reason     string    `json:"reason"`
	Message    string    `json:"message"`
	Violations []Warning `json:"violations,omitzero"`
}

// ErrFilesFailed tells that at least one file gave no bill.
var ErrFilesFailed = errors.New("not every file could be read")

// ReadFiles reads bills from files and writes one line of JSON for each. It is
// the command "kontor qrbill". The error is ErrFilesFailed when some file gave
// no bill; the lines say why.
func ReadFiles(ctx context.Context, reader *qrbill.Reader, texts endpoint.Texts, out io.Writer, options qrbill.Options, names ...string) error {
	service, failed := New(reader, texts), false
	for _, name := range names {
		answer := service.readFile(ctx, name, options)
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

func (s *Service) readFile(ctx context.Context, name string, options qrbill.Options) FileAnswer {
	file, err := loadFile(name, s.reader.MaxBytes())
	if err == nil {
		var result *qrbill.Result
		if result, err = s.reader.Read(ctx, file, options); err == nil {
			info := newQRInfo(result, func(w Warning) string { return s.word(commandLanguage, w) })
			return FileAnswer{File: name, QRInfo: &info}
		}
	}
	answer := FileAnswer{File: name, Error: &FileError{Reason: "unreadable", Message: err.Error()}}
	if problem, ok := errors.AsType[*qrbill.Error](err); ok {
		answer.Error.Reason = string(problem.Reason)
		answer.Error.Message = s.explain(commandLanguage, problem.Reason, problem.Format)
		for _, f := range problem.Findings {
			w := findingWarning(f)
			w.Message = s.word(commandLanguage, w)
			answer.Error.Violations = append(answer.Error.Violations, w)
		}
	}
	return answer
}

// loadFile reads a file unless it is larger than the reader accepts.
func loadFile(name string, most int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(most)+1)) // one byte more makes the reader refuse it
}
