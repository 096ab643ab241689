package endpoint

import (
	"context"
	"reflect"

	"kontor/server/apierr"
)

// validated is implemented by inputs with rules.
type validated interface{ Validate(v *apierr.Fields) }

// validatedNow is implemented by inputs whose rules depend on the request, such as dates that must not be in the future.
type validatedNow interface {
	Validate(ctx context.Context, v *apierr.Fields)
}

// collector is implemented by inputs of which the service checks more than their rules can. The service must add its problems to
// those of the decoder, and return their error.
type collector interface{ Collect(problems *apierr.Fields) }

// read returns a pointer to the input of a request. It returns the error of all wrong fields together.
func (p *plan) read(ctx context.Context, r *Request) (any, error) {
	target := reflect.New(p.input)
	in, problems := target.Interface(), &apierr.Fields{}
	if err := p.bind(r, target.Elem(), problems); err != nil {
		return nil, err
	}
	switch checked := in.(type) {
	case validated:
		checked.Validate(problems)
	case validatedNow:
		checked.Validate(ctx, problems)
	}
	if service, ok := in.(collector); ok {
		service.Collect(problems)
		return in, nil
	}
	return in, problems.Err()
}
