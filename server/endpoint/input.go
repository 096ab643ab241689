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

// Problems returns the members of a body that the rules of the input reject. It does not call the handler: rules that depend on stored
// records do not apply. It returns nil if the handler has no input.
func (h Handler) Problems(ctx context.Context, body string) *apierr.Fields {
	if h.plan == nil || !h.plan.hasBody() {
		return nil
	}
	in, problems := reflect.New(h.plan.input), &apierr.Fields{}
	if err := h.plan.bindBody([]byte(body), in.Elem(), problems); err != nil {
		problems.Add("body", "invalid.json")
	}
	check(ctx, in.Interface(), problems)
	return problems
}

// QueryProblems is Problems for a request with one parameter of the query.
func (h Handler) QueryProblems(ctx context.Context, name, value string) *apierr.Fields {
	in, problems := reflect.New(h.plan.input), &apierr.Fields{}
	for _, field := range h.plan.query {
		if field.name == name {
			setQuery(in.Elem().Field(field.index), name, []string{value}, problems)
		}
	}
	check(ctx, in.Interface(), problems)
	return problems
}

// check adds what the rules of an input reject.
func check(ctx context.Context, in any, problems *apierr.Fields) {
	switch checked := in.(type) {
	case validated:
		checked.Validate(problems)
	case validatedNow:
		checked.Validate(ctx, problems)
	}
}

// read returns a pointer to the input of a request. It returns the error of all wrong fields together.
func (p *plan) read(ctx context.Context, r *Request) (any, error) {
	target := reflect.New(p.input)
	in, problems := target.Interface(), &apierr.Fields{}
	if err := p.bind(r, target.Elem(), problems); err != nil {
		return nil, err
	}
	check(ctx, in, problems)
	if service, ok := in.(collector); ok {
		service.Collect(problems)
		return in, nil
	}
	return in, problems.Err()
}
