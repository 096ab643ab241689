package qrbill

import (
	"errors"
	"fmt"
)

// Reason is the reason why no bill was read.
type Reason string

// The reasons, with their names in the API.
const (
	NoQRCode         Reason = "no_qr_code"
	NotSwissQRBill   Reason = "not_a_swiss_qr_bill"
	UnsupportedFile  Reason = "unsupported_file"
	DamagedFile      Reason = "damaged_file"
	EncryptedFile    Reason = "encrypted_file"
	PageOutOfRange   Reason = "page_out_of_range"
	TooLarge         Reason = "too_large"
	TooComplex       Reason = "too_complex"
	InvalidPayload   Reason = "invalid_payload"
	reasonOverloaded Reason = "overloaded"
)

// ErrBusy reports that all workers were busy. Callers should retry later.
var ErrBusy = &Error{Reason: reasonOverloaded}

// Error reports why no bill was read from a file.
type Error struct {
	Reason Reason
	// Format is the kind of file for UnsupportedFile, such as "HEIC".
	Format string
	// Findings are the violations for InvalidPayload, if any.
	Findings []Finding
	cause    error
}

func (e *Error) Error() string {
	text := string(e.Reason)
	if e.Format != "" {
		text += " (" + e.Format + ")"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause of the Error.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error with the same reason.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Reason == e.Reason
}

// ReasonOf returns the reason of an Error, or "" for other errors.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// errorf returns an Error with a formatted cause.
func errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, cause: fmt.Errorf(format, args...)}
}
