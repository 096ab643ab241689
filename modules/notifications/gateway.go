package notifications

import (
	"context"
	"errors"
	"time"
)

// Gateway takes the deliveries of one channel out of the house.
type Gateway interface {
	// Send hands a delivery over. Its id is the same at every attempt, so that the gateway can tell a repetition. An
	// error that is no [Refusal] is worth another attempt.
	Send(ctx context.Context, d Delivery) error
}

// Refusal is a gateway's answer that says more than "not now".
type Refusal struct {
	Permanent  bool          // another attempt would get the same answer
	RetryAfter time.Duration // how long the gateway wants to be left alone; zero: it does not say
	Cause      error
}

// Error is the cause.
func (r *Refusal) Error() string { return r.Cause.Error() }

// Unwrap gives the cause to errors.Is and errors.As.
func (r *Refusal) Unwrap() error { return r.Cause }

// refusal finds out what an error of a gateway says.
func refusal(err error) Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return *r
	}
	return Refusal{Cause: err}
}
