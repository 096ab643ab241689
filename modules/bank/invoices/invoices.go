// Package invoices reads the Swiss QR-bill of an uploaded invoice. It neither stores nor logs the file. It stores what a bill says only
// if the caller asks for that: in a list that only this user sees, sealed, until they delete it or it has not been read for
// invoices.keep_days. Package qrbill does the reading.
//
// The module owns the table bills and publishes no views.
package invoices

import (
	"context"
	"errors"
	"slices"
	"time"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
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
		list := make([]Warning, 0, len(problem.Findings))
		for _, f := range problem.Findings {
			w := findingWarning(f)
			w.Message = s.describe(lang, w)
			list = append(list, w)
		}
		invalid = invalid.Detail("violations", list)
	}
	return invalid
}

// invalidInput returns the error invalid_input with a reason and its explanation.
func (s *Service) invalidInput(lang string, reason qrbill.Reason, format string) *apierr.Error {
	e := apierr.InvoiceInvalid.With(apierr.Args{"Explanation": s.explain(lang, reason, format)}).Detail("reason", string(reason))
	if format != "" {
		e = e.Detail("format", format)
	}
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
