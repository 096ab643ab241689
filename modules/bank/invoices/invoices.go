// Package invoices reads the Swiss QR-bill of an uploaded invoice. It neither stores nor logs the file. It stores what a bill says only
// if the caller asks for that: in a list that only this user sees, sealed, until they delete it or it has not been read for
// invoices.keep_days. Package qrbill does the reading.
//
// The module owns the table bills and publishes no views.
package invoices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Service reads QR-bills.
type Service struct {
	db       *store.DB
	reader   *qrbill.Reader
	texts    endpoint.Texts
	keepDays int
}

// New returns the service on a database. Kept bills stay for keepDays days after they were read last.
func New(db *store.DB, reader *qrbill.Reader, texts endpoint.Texts, keepDays int) *Service {
	db.RegisterSealed(sealedBills)
	return &Service{db: db, reader: reader, texts: texts, keepDays: keepDays}
}

// retryBusy is the time after which a client should retry when all workers are busy.
const retryBusy = 2 * time.Second

// Read returns the payment of the invoice in the request. It returns apierr.InvoiceInvalid with details.reason for a file
// without a readable bill, and apierr.Unavailable while too many files are being read.
func (s *Service) Read(ctx context.Context, in ReadInput) (ReadResult, error) {
	lang := endpoint.Language(ctx)
	if in.Options.malformed {
		return ReadResult{}, s.invalidInput(lang, reasonOptions, "")
	}
	load := func() ([]byte, error) {
		file, ok := in.File.decode()
		if !ok || len(file) == 0 {
			return nil, s.invalidInput(lang, reasonBase64, "")
		}
		return file, nil
	}
	options := qrbill.Options{Page: in.Options.Page, Strict: in.Options.ValidateFormat, Caller: access.From(ctx).UserID, Waiting: in.File.size() / 4 * 3}
	result, err := s.reader.ReadFunc(ctx, load, options)
	if err != nil {
		return ReadResult{}, s.apiError(lang, err)
	}
	read := ReadResult{QRInfo: newQRInfo(result, func(w Warning) string { return s.describe(lang, w) })}
	if in.Options.Keep {
		kept := read.QRInfo
		kept.Warnings = slices.Clone(kept.Warnings)
		read.BillID, err = s.keep(ctx, kept)
	}
	return read, err
}

// Reasons of errors in the request, in addition to those of package qrbill.
const (
	reasonBase64  qrbill.Reason = "invalid_base64"
	reasonOptions qrbill.Reason = "invalid_options"
	reasonBody    qrbill.Reason = "invalid_body"
)

// apiError converts an error of the reader to an error of the API.
func (s *Service) apiError(lang string, err error) error {
	if errors.Is(err, qrbill.ErrBusy) {
		return &apierr.Error{Kind: apierr.Unavailable, Cause: err, Retry: retryBusy}
	}
	problem, ok := errors.AsType[*qrbill.Error](err)
	if !ok {
		return err
	}
	invalid := s.invalidInput(lang, problem.Reason, problem.Format)
	if len(problem.Findings) > 0 {
		invalid = invalid.Detail("violations", s.violations(lang, problem))
	}
	return invalid
}

// violations returns the findings of an error with their texts in a language; nil for none.
func (s *Service) violations(lang string, problem *qrbill.Error) (all []Warning) {
	for _, f := range problem.Findings {
		w := findingWarning(f)
		w.Message = s.describe(lang, w)
		all = append(all, w)
	}
	return all
}

// invalidInput returns the error invalid_input with a reason and its explanation.
func (s *Service) invalidInput(lang string, reason qrbill.Reason, format string) *apierr.Error {
	e := apierr.InvoiceInvalid.With(apierr.Args{"Explanation": s.explain(lang, reason, format)}).Detail("reason", string(reason))
	if format != "" {
		e = e.Detail("format", format)
	}
	return e
}

// rejectBody returns the error invalid_input of a body that is no JSON object, with what is wrong.
func (s *Service) rejectBody(ctx context.Context, invalid *apierr.Error) error {
	e := s.invalidInput(endpoint.Language(ctx), reasonBody, "")
	e.Fields, e.Cause = invalid.Fields, invalid.Cause
	return e
}

// explain renders a reason in a language. It names the kind of the file where that is known.
func (s *Service) explain(lang string, reason qrbill.Reason, format string) string {
	key := "invoices.reason." + string(reason)
	switch {
	case reason != qrbill.UnsupportedFile || format == "":
	case format == "HEIC":
		key += ".heic" // says what to do at the telephone
	default:
		key += ".named"
	}
	return s.texts.Text(lang, key, map[string]any{"Format": format})
}

// describe renders a warning in a language.
func (s *Service) describe(lang string, w Warning) string {
	if w.Kind == WarningOtherBill {
		return s.texts.Text(lang, "invoices.warning.other_bill", map[string]any{"Page": w.Page, "IBAN": w.Value})
	}
	element := s.texts.Text(lang, "invoices.element."+w.Element, nil)
	return s.texts.Text(lang, "invoices.rule."+w.Rule, map[string]any{"Element": element})
}

// bodyOverhead is the maximum size of a request without its file.
const bodyOverhead = 64 << 10

// Endpoints returns the endpoints of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	encoded := s.reader.MaxBytes() / 3 * 4
	return []endpoint.Endpoint{
		// Bills belong to the caller, so that only the grant on the endpoint decides.
		{Name: "invoices.read_qr_code", Method: http.MethodPost, Path: "/v1/invoices/qrcode", Roles: []string{access.Advisor, access.Customer},
			Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Invoices", MaxBody: encoded + encoded/16 + bodyOverhead, OwnTime: true,
			Summary: "Read the Swiss QR-bill of an invoice.",
			Faults:  []apierr.Kind{apierr.InvoiceInvalid, apierr.Unavailable, apierr.PayloadTooLarge},
			Handle:  endpoint.JSON(http.StatusOK, s.Read).Rejecting(s.rejectBody)},
		{Name: "invoices.bills", Method: http.MethodGet, Path: "/v1/invoices/bills", Roles: []string{access.Advisor, access.Customer},
			Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Invoices", Summary: "List the bills that the caller has kept.",
			Doc: endpoint.Doc{Search: billList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.Bills)},
		{Name: "invoices.forget", Method: http.MethodDelete, Path: "/v1/invoices/bills/{id}", Roles: []string{access.Advisor, access.Customer},
			Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Invoices", Summary: "Delete a bill that the caller has kept.",
			Faults: []apierr.Kind{apierr.BillNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Forget)},
	}
}

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
		answer.Error.Violations = s.violations(commandLanguage, problem)
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
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(maxBytes)+1)) // with one byte more, the reader rejects the file
}
