package qrbill

import (
	"errors"
	"fmt"
)

// Reason says why no bill could be read.
type Reason string

// The reasons, as the API names them.
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

// ErrBusy tells that all places for work stayed taken; trying again later helps.
var ErrBusy = &Error{Reason: reasonOverloaded}

// Error is why a file gave no bill.
type Error struct {
	Reason Reason
	// Format names the kind of file for UnsupportedFile, "HEIC" for example.
	Format string
	// Findings are the violations for InvalidPayload, where there are any.
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

// Unwrap returns what the Error was caused by.
func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is compare by reason.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Reason == e.Reason
}

// ReasonOf returns the reason an error carries, or "".
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func because(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, cause: fmt.Errorf(format, args...)}
}
