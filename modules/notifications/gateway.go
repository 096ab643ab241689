package notifications

import (
	"context"
	"errors"
	"time"
)

// Gateway sends the deliveries of one channel.
type Gateway interface {
	// Send sends a delivery. The id is the same at every attempt, so that the gateway can recognise a repetition. After an
	// error that is not a [SendError] the delivery is tried again.
	Send(ctx context.Context, d Delivery) error
}

// SendError is an error of a gateway that says how to go on.
type SendError struct {
	Permanent  bool          // another attempt would fail, too
	RetryAfter time.Duration // before the next attempt; zero if the gateway does not say
	Cause      error
}

// Error returns the text of the cause.
func (e *SendError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *SendError) Unwrap() error { return e.Cause }

// sendErrorOf returns an error of a gateway as a SendError.
func sendErrorOf(err error) SendError {
	if e, ok := errors.AsType[*SendError](err); ok {
		return *e
	}
	return SendError{Cause: err}
}
