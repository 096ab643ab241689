package notifications

import (
	"context"

	"kontor/modules/kit/outbox"
)

// Gateway sends the deliveries of one channel.
type Gateway interface {
	// Send sends a delivery. The id is the same at every attempt, so that the gateway can recognise a repetition. After an
	// error that is not a [SendError] the delivery is tried again.
	Send(ctx context.Context, d Delivery) error
}

// SendError is an error of a gateway that says how to go on.
type SendError = outbox.Error
