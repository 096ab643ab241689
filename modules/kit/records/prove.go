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

// ErrUnproven says that no audit entry holds a record that somebody shows.
var ErrUnproven = errors.New("no audit entry holds this record")

// Prove looks for the entry that left a record as the API answered it, and also returns the newest statement about it: the
// record was changed since when that is another one. It returns ErrUnproven.
func (p Proof) Prove(ctx context.Context, e *audittrail.Evidence, id string, answer []byte) (found, newest audittrail.Statement, err error) {
	digested, err := p.digested(answer)
	if err != nil {
		return found, newest, fmt.Errorf("the record is no JSON object: %w", err)
	}
	found, newest, err = e.Find(ctx, p.Type, id, e.AnswerDigest(digested))
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%s/%s: %w", p.Type, id, ErrUnproven)
	}
	return found, newest, err
}

// digested puts an answer into the form that is digested: compact, its members in the order in which the API writes them,
// those outside the digest at their fixed values. The member people is no part of the record and is left out.
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
		if member == "people" { // whom the answer names, as they were called then
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
