package endpoint

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
)

// Answered is a request with its answer, for the log of requests. It must not outlive the call that passes it on.
type Answered struct {
	Row       *Endpoint // nil: no endpoint has the path or the method
	At        time.Time // when the request arrived, by the service's clock
	Took      time.Duration
	Status    int
	Refusal   *apierr.Error // nil for a success
	Caller    *access.Caller
	RequestID string
	Fiber     *fiber.Ctx // the request and its answer
}
