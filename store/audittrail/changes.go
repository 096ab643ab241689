package audittrail

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// FieldChange is the value of one field before and after a change, as JSON; null for none.
type FieldChange struct {
	Field  string         `json:"field"` // members of an object are separated by a point
	Before jsontext.Value `json:"before"`
	After  jsontext.Value `json:"after"`
	Cut    bool           `json:"cut,omitzero"` // a value is the beginning of a longer text, or of the JSON of a longer value
}

// Changed returns the change of a field with texts. An empty text stands for no value.
func Changed(field, before, after string) FieldChange {
	return FieldChange{Field: field, Before: quote(before), After: quote(after)}
}

func quote(text string) jsontext.Value {
	if text == "" {
		return null()
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil { // invalid UTF-8 was replaced
		return null()
	}
	return quoted
}

func null() jsontext.Value { return jsontext.Value("null") }

// The bounds of the changed fields of one entry.
const (
	maxChanges     = 100
	maxValueLength = 500 // bytes of JSON; longer values are cut
	maxDepth       = 3   // members of members are compared one by one up to here
	more           = "…" // the field of a change that stands for those beyond maxChanges
)

// ChangeRule says which members of a record type are no changed fields.
type ChangeRule struct {
	// Omit are members that the service derives, or that the entry has anyway, such as the time of the change. Those of an object
	// are named with a point: metadata.logs.
	Omit []string
	// Forget deletes the changed fields of a record when it is deleted, because they may hold personal data that no later
	// erasure finds.
	Forget bool
}

// Compare returns what differs between two answers, which are JSON objects. It returns nil for others.
func (r ChangeRule) Compare(before, after []byte) []FieldChange {
	var changes []FieldChange
	if before == nil || after == nil || bytes.Equal(before, after) {
		return nil
	}
	r.compareObjects("", before, after, 1, &changes)
	if len(changes) > maxChanges {
		changes = append(changes[:maxChanges], FieldChange{Field: more, Before: null(), After: null(), Cut: true})
	}
	return changes
}

func (r ChangeRule) compareObjects(at string, before, after jsontext.Value, depth int, changes *[]FieldChange) {
	was, ok := membersOf(before)
	is, also := membersOf(after)
	if !ok || !also {
		return
	}
	for i, m := range was {
		other := jsontext.Value(nil)
		if i < len(is) && is[i].name == m.name { // the same struct has the same order
			other = is[i].value
		} else if j := slices.IndexFunc(is, func(o member) bool { return o.name == m.name }); j >= 0 {
			other = is[j].value
		}
		r.compareMember(at, m.name, m.value, other, depth, changes)
	}
	for i, m := range is {
		if i < len(was) && was[i].name == m.name || slices.ContainsFunc(was, func(o member) bool { return o.name == m.name }) {
			continue
		}
		r.compareMember(at, m.name, nil, m.value, depth, changes)
	}
}

func (r ChangeRule) compareMember(at, name string, before, after jsontext.Value, depth int, changes *[]FieldChange) {
	if bytes.Equal(before, after) || slices.Contains(r.Omit, at+name) {
		return
	}
	field := at + name
	if depth < maxDepth && before.Kind() == '{' && after.Kind() == '{' {
		r.compareObjects(field+".", before, after, depth+1, changes)
		return
	}
	c := FieldChange{Field: cutText(field)}
	var cutBefore, cutAfter bool
	c.Before, cutBefore = bounded(before)
	c.After, cutAfter = bounded(after)
	c.Cut = cutBefore || cutAfter
	*changes = append(*changes, c)
}

type member struct {
	name  string
	value jsontext.Value
}

// membersOf returns the members of a JSON object. Values are parts of it.
func membersOf(object jsontext.Value) (members []member, ok bool) {
	in := jsontext.NewDecoder(bytes.NewBuffer(object))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, false
	}
	members = make([]member, 0, 24)
	for in.PeekKind() != '}' {
		token, err := in.ReadToken()
		if err != nil {
			return nil, false
		}
		name := token.String()
		value, err := in.ReadValue()
		if err != nil {
			return nil, false
		}
		end := in.InputOffset() // the decoder may reuse the memory of value
		members = append(members, member{name, object[end-int64(len(value)) : end]})
	}
	return members, true
}

// bounded returns a value of bounded length: of a longer text the beginning, and of another longer value the beginning of its
// JSON as a text.
func bounded(v jsontext.Value) (shown jsontext.Value, cut bool) {
	switch {
	case v == nil:
		return null(), false
	case len(v) <= maxValueLength:
		return v, false
	}
	text := string(v)
	if v.Kind() == '"' {
		if err := json.Unmarshal(v, &text); err != nil {
			return null(), true
		}
	}
	return quote(cutText(text)), true
}

// cutText returns the beginning of a text, without a part of a character.
func cutText(text string) string {
	if len(text) <= maxValueLength {
		return text
	}
	end := maxValueLength
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// encodeChanges returns the bytes that are sealed and digested: random bytes, so that a guess about deleted values cannot be
// confirmed, and the JSON of the changes.
func encodeChanges(salt, changes []byte) []byte { return append(salt, changes...) }

// decodeChanges is the inverse of encodeChanges.
func decodeChanges(plain []byte) (changes []FieldChange, err error) {
	if len(plain) < saltBytes {
		return nil, fmt.Errorf("changed fields of %d bytes", len(plain))
	}
	return changes, json.Unmarshal(plain[saltBytes:], &changes)
}

// The changed fields of an entry are sealed in the table audit_values. The entry has their keyed digest as its detail. So the
// chain protects them, and yet they can be deleted.

// Where the sealed values are.
const (
	ValuesTable  = "audit_values"
	ValuesColumn = "sealed"
)

// ValuesSchema is the number of the migration that added the table of values.
const ValuesSchema = 41

const (
	saltBytes   = 16
	digestBytes = 16
)

// Values are the changed fields of one entry, sealed.
type Values struct {
	digest string
	sealed string
}

// NewValues seals changes. It returns nil for none.
func (d *Digester) NewValues(keys *sealing.Keys, changes []FieldChange) (*Values, error) {
	if len(changes) == 0 {
		return nil, nil //nolint:nilnil // nothing changed
	}
	text, err := json.Marshal(changes)
	if err != nil {
		return nil, fmt.Errorf("encode changed fields: %w", err)
	}
	salt := make([]byte, saltBytes, saltBytes+len(text))
	_, _ = rand.Read(salt) // never fails
	plain := encodeChanges(salt, text)
	v := &Values{digest: d.ofValues(plain)}
	v.sealed = keys.Seal(ValuesTable, ValuesColumn, v.digest, plain)
	return v, nil
}

// valuesTag leads the bytes of a digest of changed fields. They are digested with the key of answers, because a keyring keeps the
// keys of the first generation for the purposes that it had then. No answer begins with the tag.
const valuesTag = "kontor audit values 1\n"

func (d *Digester) ofValues(plain []byte) string {
	data := append(make([]byte, 0, len(valuesTag)+len(plain)), valuesTag...)
	return hex.EncodeToString(d.answers.Sum(nil, append(data, plain...))[:digestBytes])
}

// Changes returns what a rule finds to differ between two records. Digests of records that the trail did not encode have no
// difference.
func (r ChangeRule) Changes(before, after Digest) []FieldChange {
	return r.Compare(before.answer, after.answer)
}

// With returns the digest with the changed fields that lead to it.
func (d Digest) With(v *Values) Digest {
	d.values = v
	return d
}

const (
	detailStart = `{"values":"`
	detailEnd   = `"}`
)

// detail returns the detail of an entry with values.
func (v *Values) detail() string { return detailStart + v.digest + detailEnd }

// ValuesDigest returns the digest of the changed fields that an entry had when it was written, from its detail; empty for none.
func ValuesDigest(detail string) string {
	rest, ok := strings.CutPrefix(detail, detailStart)
	if !ok {
		return ""
	}
	digest, ok := strings.CutSuffix(rest, detailEnd)
	if !ok || len(digest) != 2*digestBytes {
		return ""
	}
	return digest
}

// The statements for a rotation of the master key, see store.SealedColumn. The digest of the values, to which they are bound, stands in
// the detail of their entry behind detailStart.
const (
	SelectOldValues = `
		SELECT CAST(v.seq AS TEXT), substr(e.detail, 12, 32), v.sealed FROM audit_values v JOIN audit_entries e ON e.seq = v.seq
		WHERE v.sealed NOT LIKE $1 AND v.seq > CAST(COALESCE(NULLIF($2, ''), '0') AS BIGINT)
		ORDER BY v.seq
		LIMIT $3`

	UpdateValues = `UPDATE audit_values SET sealed = $3 WHERE seq = CAST($1 AS BIGINT) AND sealed = $2`
)

const (
	insertValues = `INSERT INTO audit_values (seq, sealed) VALUES ($1, $2)`

	// deleteValuesOf deletes the values of all changes of a record.
	deleteValuesOf = `
		DELETE FROM audit_values
		WHERE seq IN (SELECT seq FROM audit_entries WHERE rec_id = $1 AND rec_type = $2)`

	selectValues = `SELECT sealed FROM audit_values WHERE seq = $1`

	selectValuesAfter = `
		SELECT v.seq, COALESCE(e.detail, ''), v.sealed FROM audit_values v LEFT JOIN audit_entries e ON e.seq = v.seq
		WHERE v.seq > $1
		ORDER BY v.seq
		LIMIT 500`

	selectOldest = `
		SELECT v.seq, e.at FROM audit_values v JOIN audit_entries e ON e.seq = v.seq
		ORDER BY v.seq
		LIMIT $1`

	deleteValuesTo = `DELETE FROM audit_values WHERE seq <= $1`
)

// writeValues writes the changed fields of an entry, and deletes those of its record if the entry says so.
func writeValues(ctx context.Context, tx engine.Source, p *Pending) error {
	if p.forget {
		if _, err := query.Exec(ctx, tx, deleteValuesOf, []any{&p.entry.RecID, &p.entry.RecType}); err != nil {
			return err
		}
	}
	if p.values == nil {
		return nil
	}
	_, err := query.Exec(ctx, tx, insertValues, []any{p.entry.Seq, &p.values.sealed})
	return err
}

// ReadValues returns the changed fields of an entry. It returns engine.ErrNotFound when they were deleted or there are none.
func ReadValues(ctx context.Context, q query.Querier, keys *sealing.Keys, seq int64, digest string) ([]FieldChange, error) {
	var sealed string
	if err := q.QueryRow(ctx, selectValues, seq).Scan(&sealed); err != nil {
		return nil, err
	}
	plain, err := keys.Unseal(ValuesTable, ValuesColumn, digest, sealed)
	if err != nil {
		return nil, fmt.Errorf("changed fields of entry %d: %w", seq, err)
	}
	return decodeChanges(plain)
}

// PurgeValues deletes the changed fields of entries from before a time, at most limit. It returns how many.
func PurgeValues(ctx context.Context, tx query.Writer, before clock.Time, limit int) (int64, error) {
	last, ended := int64(0), false
	err := query.Each(ctx, tx, func(row query.Scanner) error {
		var seq int64
		var at clock.Time
		err := row.Scan(&seq, &at)
		if ended = ended || at >= before; !ended {
			last = seq
		}
		return err
	}, selectOldest, limit)
	if err != nil || last == 0 {
		return 0, err
	}
	return tx.Exec(ctx, deleteValuesTo, last)
}

// VerifyValues compares all changed fields that exist with the digests in their entries, and returns how many there are. The error
// is a *Break for the first that differ, or that belong to no entry. Deleted values are not noticed.
func VerifyValues(ctx context.Context, q query.Querier, keys *sealing.Keys) (count int64, err error) {
	d := NewDigester(keys)
	for last, full := int64(0), true; full; {
		n := int64(0)
		err := query.Each(ctx, q, func(row query.Scanner) error {
			var detail, sealed string
			if err := row.Scan(&last, &detail, &sealed); err != nil {
				return err
			}
			n++
			return d.verifyValues(keys, last, detail, sealed)
		}, selectValuesAfter, last)
		if err != nil {
			return count, err
		}
		count += n
		full = n > 0
	}
	return count, nil
}

func (d *Digester) verifyValues(keys *sealing.Keys, seq int64, detail, sealed string) error {
	digest := ValuesDigest(detail)
	if digest == "" {
		return &Break{Seq: seq, Reason: "it has no changed fields, but some are stored for it"}
	}
	plain, err := keys.Unseal(ValuesTable, ValuesColumn, digest, sealed)
	if err != nil || d.ofValues(plain) != digest {
		return &Break{Seq: seq, Reason: "its changed fields were changed"}
	}
	return nil
}
