// Package invoices reads the payment out of an uploaded invoice. It keeps
// nothing: neither the file nor what it says is stored or logged. The reading
// itself is done by the package qrbill.
package invoices

import (
	"context"
	"errors"
	"time"

	"kontor/modules/invoices/qrbill"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Service reads QR-bills.
type Service struct {
	reader *qrbill.Reader
	texts  endpoint.Texts
}

// New makes the service. The reader starts its PDF engine with the first PDF.
func New(reader *qrbill.Reader, texts endpoint.Texts) *Service { return &Service{reader, texts} }

// retryBusy is how long a client should wait when all places are taken.
const retryBusy = 2 * time.Second

// Read answers with the payment of the invoice in the request. It returns
// apierr.InvoiceInvalid with details.reason for a file without one, and
// apierr.Unavailable while too many files are being read.
func (s *Service) Read(ctx context.Context, in ReadInput) (ReadResult, error) {
	lang := endpoint.Language(ctx)
	if in.Options.wrong {
		return ReadResult{}, s.refusal(lang, reasonOptions, "")
	}
	load := func() ([]byte, error) {
		file, ok := in.File.decode()
		if !ok || len(file) == 0 {
			return nil, s.refusal(lang, reasonBase64, "")
		}
		return file, nil
	}
	options := qrbill.Options{Page: in.Options.Page, Strict: in.Options.ValidateFormat, Caller: access.From(ctx).UserID}
	result, err := s.reader.ReadFunc(ctx, load, options)
	if err != nil {
		return ReadResult{}, s.fault(lang, err)
	}
	return ReadResult{QRInfo: newQRInfo(result, func(w Warning) string { return s.word(lang, w) })}, nil
}

// Reasons that only the request can have.
const (
	reasonBase64  qrbill.Reason = "invalid_base64"
	reasonOptions qrbill.Reason = "invalid_options"
)

// fault makes the error of the API from one of the reader.
func (s *Service) fault(lang string, err error) error {
	if errors.Is(err, qrbill.ErrBusy) {
		return &apierr.Error{Kind: apierr.Unavailable, Cause: err, Retry: retryBusy}
	}
	problem, ok := errors.AsType[*qrbill.Error](err)
	if !ok {
		return err
	}
	refusal := s.refusal(lang, problem.Reason, problem.Format)
	if len(problem.Findings) > 0 {
		list := make([]Warning, 0, len(problem.Findings))
		for _, f := range problem.Findings {
			w := findingWarning(f)
			w.Message = s.word(lang, w)
			list = append(list, w)
		}
		refusal = refusal.Detail("violations", list)
	}
	return refusal
}

// refusal is invalid_input with a reason, and the sentence that explains it.
func (s *Service) refusal(lang string, reason qrbill.Reason, format string) *apierr.Error {
	e := apierr.InvoiceInvalid.With(apierr.Args{"Explanation": s.explain(lang, reason, format)}).Detail("reason", string(reason))
	if format != "" {
		e = e.Detail("format", format)
	}
	return e
}

// explain says a reason in a language. A kind of file is named where it is known.
func (s *Service) explain(lang string, reason qrbill.Reason, format string) string {
	key := "invoices.reason." + string(reason)
	if format != "" && reason == qrbill.UnsupportedFile {
		key += ".named"
	}
	return s.texts.Text(lang, key, map[string]any{"Format": format})
}

// word says a warning in a language.
func (s *Service) word(lang string, w Warning) string {
	if w.Kind == WarningOtherBill {
		return s.texts.Text(lang, "invoices.warning.other_bill", map[string]any{"Page": w.Page, "IBAN": w.Value})
	}
	element := s.texts.Text(lang, "invoices.element."+w.Element, nil)
	return s.texts.Text(lang, "invoices.rule."+w.Rule, map[string]any{"Element": element})
}
