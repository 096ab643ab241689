package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/store"
	"kontor/store/audittrail"
)

// ErrUnproven means that no audit entry contains the presented record.
var ErrUnproven = errors.New("no audit entry contains this record")

// Prove finds the entry for a record as the API answered it. It also returns the newest statement about the record: if the two
// differ, the record was changed since. It returns ErrUnproven.
func (p Proof) Prove(ctx context.Context, e *audittrail.Evidence, id string, answer []byte) (found, newest audittrail.Statement, err error) {
	digested, err := p.digested(answer)
	if err != nil {
		return found, newest, fmt.Errorf("the record is not a JSON object: %w", err)
	}
	found, newest, err = e.Find(ctx, p.Type, id, e.AnswerDigest(digested))
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%s/%s: %w", p.Type, id, ErrUnproven)
	}
	return found, newest, err
}

// digested converts an answer to the form that the digest covers: compact JSON, with fixed values for members outside the
// digest. It omits the member people, which is not part of the record.
func (p Proof) digested(answer []byte) ([]byte, error) {
	in := jsontext.NewDecoder(bytes.NewReader(answer))
	token, err := in.ReadToken()
	if err != nil {
		return nil, err
	}
	if token.Kind() != '{' {
		return nil, fmt.Errorf("it begins with %s", token)
	}
	out := &bytes.Buffer{}
	out.WriteByte('{')
	for in.PeekKind() != '}' {
		name, err := in.ReadToken()
		if err != nil {
			return nil, err
		}
		member := name.String()
		value, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		if member == "people" { // the display names at the time of the answer
			continue
		}
		if fixed, outside := p.Outside[member]; outside {
			value = jsontext.Value(fixed)
		} else if err := value.Compact(); err != nil {
			return nil, err
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		quoted, err := jsontext.AppendQuote(nil, member)
		if err != nil {
			return nil, err
		}
		out.Write(quoted)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	_, err = in.ReadToken()
	return out.Bytes(), err
}
