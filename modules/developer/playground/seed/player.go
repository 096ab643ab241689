package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Anonymous in "as" sends a step without a session.
const Anonymous = "anonymous"

// ErrStranger says that no user has a name.
var ErrStranger = errors.New("no such user")

// Failure says why a step failed. Reason is one of the texts "error.sandbox.step_failed.…".
type Failure struct {
	Step    Step
	Reason  string
	Status  int    // of the answer; 0: there was none
	Code    string // of the answer's error
	Message string
	Fields  map[string]string // the details of the error
	Member  string            // that was expected or referenced
	Cause   error
}

// The reasons of a [Failure].
const (
	failStatus    = "status"    // the answer has another status
	failBody      = "body"      // the answer lacks an expected member
	failReference = "reference" // an earlier answer has no such member
	failValue     = "value"     // a referenced value cannot stand there
	failUser      = "user"      // "as" names no user
	failAnswer    = "answer"    // no complete answer
	failSize      = "size"      // references make the request too large
)

func (f *Failure) Error() string {
	return fmt.Sprintf("step %s in line %d: %s %d %s %s", f.Step.ID, f.Step.Line, f.Reason, f.Status, f.Code, f.Member)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// The limits of answers.
const (
	maxAnswer = 1 << 20  // bytes of an answer that later steps refer to
	maxKept   = 64 << 20 // bytes of all of them
)

// state is a file that is being played.
type state struct {
	*sender
	file    *File
	run     int64 // the value of ${run}
	answers map[string]answer
	kept    int
	secrets []string
	left    int // bytes that references may still add to the step's request
}

// answer is what a step returned, for references.
type answer struct {
	body any
	size int
}

// playAll sends the steps of a file in their order. It stops at the first one that fails, with a *[Failure]; the steps before it stay done
// and are in the result. before is called before each step, with its number from 0.
func (d *sender) playAll(ctx context.Context, file *File, run int64, before func(n int)) ([]PlayedStep, error) {
	s := &state{sender: d, file: file, run: run, answers: map[string]answer{}}
	done := []PlayedStep{}
	for n, step := range file.Steps {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		before(n)
		played, err := s.playStep(ctx, step)
		if err != nil {
			return done, err
		}
		done = append(done, played)
	}
	return done, nil
}

func (s *state) playStep(ctx context.Context, step Step) (PlayedStep, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	s.left = maxText
	userID, err := s.user(ctx, step)
	if err != nil {
		return PlayedStep{}, err
	}
	request, err := s.request(ctx, step)
	if err != nil {
		return PlayedStep{}, err
	}
	response, err := s.Send(ctx, userID, request)
	if errors.Is(err, ErrStranger) {
		return PlayedStep{}, &Failure{Step: step, Reason: failUser, Member: step.As.source}
	}
	if err != nil {
		return PlayedStep{}, &Failure{Step: step, Reason: failAnswer, Cause: err}
	}
	defer response.Body.Close()
	if media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); media == "text/event-stream" {
		return PlayedStep{}, &Failure{Step: step, Reason: failAnswer, Status: response.StatusCode}
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return PlayedStep{}, &Failure{Step: step, Reason: failAnswer, Status: response.StatusCode, Cause: err}
	}
	return s.conclude(step, response.StatusCode, content)
}

// conclude compares an answer with what the step expects, and keeps it.
func (s *state) conclude(step Step, status int, content []byte) (PlayedStep, error) {
	result := PlayedStep{ID: step.ID, Line: step.Line, Request: step.Request(), Status: status}
	var body any
	if len(content) <= maxAnswer {
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.UseNumber()
		if decoder.Decode(&body) != nil {
			body = nil // another media type
		}
	}
	s.learn(body, "")
	expected := step.Expect.Status
	if expected == 0 && status >= 200 && status < 300 || expected == status {
		if member, ok := s.fits(step.Expect, body, step); !ok {
			return PlayedStep{}, &Failure{Step: step, Reason: failBody, Status: status, Member: s.mask(member)}
		}
	} else {
		return PlayedStep{}, s.unexpected(step, status, body)
	}
	object, _ := body.(map[string]any)
	if id, ok := object["id"].(string); ok && step.Method != http.MethodGet && status < 300 {
		result.RecordID = &id
	}
	if err := s.keep(step, body, content); err != nil {
		return PlayedStep{}, err
	}
	return result, nil
}

// unexpected returns the failure of an answer with another status.
func (s *state) unexpected(step Step, status int, body any) *Failure {
	f := &Failure{Step: step, Reason: failStatus, Status: status}
	object, _ := body.(map[string]any)
	code, _ := object["code"].(string)
	message, _ := object["message"].(string)
	f.Code, f.Message = s.mask(code), s.mask(message)
	details, _ := object["details"].(map[string]any)
	f.Fields = map[string]string{}
	for name, said := range details {
		switch said := said.(type) {
		case string:
			f.Fields[s.mask(name)] = s.mask(said)
		case []any: // such as the members that are missing
			f.Fields[s.mask(name)] = s.mask(strings.Trim(fmt.Sprint(said), "[]"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		f.Message += " " + name + ": " + f.Fields[name]
	}
	return f
}

// keep remembers the answer for later references.
func (s *state) keep(step Step, body any, content []byte) error {
	if !s.file.used[step.ID] {
		return nil
	}
	if s.kept += len(content); len(content) > maxAnswer || s.kept > maxKept {
		return &Failure{Step: step, Reason: failSize}
	}
	if len(step.Match) > 0 {
		object, ok := body.(map[string]any)
		if !ok {
			object = map[string]any{}
		}
		for _, m := range step.Match {
			found := m.pattern.FindSubmatch(content)
			if found == nil {
				return &Failure{Step: step, Reason: failReference, Member: m.name}
			}
			text := string(found[len(found)-1]) // the last group, or the whole
			s.secrets = append(s.secrets, text)
			object[m.name] = text
		}
		body = object
	}
	s.answers[step.ID] = answer{body, len(content)}
	return nil
}

// user returns the id of the user who sends a step; empty: no user.
func (s *state) user(ctx context.Context, step Step) (string, error) {
	if step.As.source == "" {
		return s.caller, nil
	}
	stranger := &Failure{Step: step, Reason: failUser, Member: step.As.source}
	if step.As.source == Anonymous {
		return "", nil
	}
	if earlier, ok := s.answers[step.As.source]; ok {
		object, _ := earlier.body.(map[string]any)
		for _, name := range []string{"user_id", "id"} {
			if id, ok := object[name].(string); ok {
				return id, nil
			}
		}
		return "", stranger
	}
	name, err := s.textOf(step, step.As, nil)
	if err != nil {
		return "", err
	}
	id, err := s.find(ctx, name)
	if errors.Is(err, ErrStranger) {
		return "", stranger
	}
	return id, err
}

// request builds the request of a step.
func (s *state) request(ctx context.Context, step Step) (*http.Request, error) {
	path, err := s.textOf(step, step.Path, escape)
	if err != nil {
		return nil, err
	}
	if !validFilled(path) {
		return nil, &Failure{Step: step, Reason: failValue, Member: step.Path.source}
	}
	content, media, err := s.body(step)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, step.Method, "http://kontor.localhost"+path, bytes.NewReader(content))
	if err != nil {
		return nil, &Failure{Step: step, Reason: failValue, Member: step.Path.source, Cause: err}
	}
	if content == nil {
		request.Body, request.ContentLength = nil, 0
	}
	query := url.Values{}
	if err := s.each(step, step.Query, func(name, value string) { query.Set(name, value) }); err != nil {
		return nil, err
	}
	request.URL.RawQuery = query.Encode()
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	err = s.each(step, step.Headers, func(name, value string) { request.Header.Set(name, value) })
	if err == nil && step.Upload != nil {
		var name string
		if name, err = s.textOf(step, step.Upload.Name, nil); err == nil {
			request.Header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		}
	}
	for _, values := range request.Header {
		if err == nil && strings.ContainsFunc(values[0], func(r rune) bool { return r < ' ' || r == 0x7f }) {
			err = &Failure{Step: step, Reason: failValue, Member: "headers"}
		}
	}
	return request, err
}

// validFilled is [ValidPath] for a path whose references are replaced.
func validFilled(path string) bool {
	plain, err := url.PathUnescape(path)
	return err == nil && !leadsAway(plain)
}

// body returns the content of a request and its media type.
func (s *state) body(step Step) (content []byte, media string, err error) {
	if step.Upload != nil {
		return step.Upload.Content, "application/octet-stream", nil
	}
	if !step.HasBody {
		return nil, "", nil
	}
	value, err := s.fill(step, step.Body)
	if err != nil {
		return nil, "", err
	}
	isType := func(header node) bool { return strings.EqualFold(header.name, "Content-Type") }
	if given, raw := value.(string); raw && slices.ContainsFunc(step.Headers, isType) {
		return []byte(given), "", nil
	}
	if content, err = json.Marshal(value); err != nil {
		return nil, "", &Failure{Step: step, Reason: failValue, Member: "body", Cause: err}
	}
	return content, "application/json", nil
}

// each calls use for each member of a query or of headers.
func (s *state) each(step Step, of mapping, use func(name, value string)) error {
	for _, one := range of {
		value, err := s.textOf(step, one.value.(text), nil)
		if err != nil {
			return err
		}
		use(one.name, value)
	}
	return nil
}

// fill replaces the references in a value.
func (s *state) fill(step Step, value any) (any, error) {
	switch v := value.(type) {
	case text:
		if ref := v.single(); ref != nil {
			return s.lookUp(step, ref)
		}
		return s.textOf(step, v, nil)
	case []any:
		all := make([]any, len(v))
		for i, entry := range v {
			one, err := s.fill(step, entry)
			if err != nil {
				return nil, err
			}
			all[i] = one
		}
		return all, nil
	case mapping:
		all := make(map[string]any, len(v))
		for _, member := range v {
			one, err := s.fill(step, member.value)
			if err != nil {
				return nil, err
			}
			all[member.name] = one
		}
		return all, nil
	}
	return value, nil
}

// textOf replaces the references in a text. convert, if set, changes each value and may reject it.
func (s *state) textOf(step Step, t text, convert func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.ref == nil {
			b.WriteString(p.literal)
			continue
		}
		found, err := s.lookUp(step, p.ref)
		if err != nil {
			return "", err
		}
		value, ok := scalarText(found)
		if number, is := found.(json.Number); is {
			value, ok = number.String(), true
		}
		if ok && convert != nil {
			value, ok = convert(value)
		}
		if !ok {
			return "", &Failure{Step: step, Reason: failValue, Member: p.ref.source}
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// lookUp returns the value of a reference.
func (s *state) lookUp(step Step, ref *reference) (any, error) {
	switch {
	case ref.root == today || ref.root == now:
		return ref.at(s.DB.Clock().Now()), nil
	case ref.name() == run:
		return s.run, nil
	}
	if value, ok := s.file.Values[ref.name()]; ok {
		return value, nil
	}
	earlier, size := s.answers[ref.root].body, s.answers[ref.root].size
	value, ok := member(earlier, ref.path)
	if !ok {
		return nil, &Failure{Step: step, Reason: failReference, Member: ref.source}
	}
	if text, is := value.(string); is {
		size = len(text)
	}
	if s.left -= size; s.left < 0 {
		return nil, &Failure{Step: step, Reason: failSize}
	}
	return value, nil
}

// member returns a nested member of a value; numbers are places in arrays.
func member(value any, path []string) (any, bool) {
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[name]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			at, err := strconv.Atoi(name)
			if err != nil || at < 0 || at >= len(v) {
				return nil, false
			}
			value = v[at]
		default:
			return nil, false
		}
	}
	return value, value != nil || len(path) > 0
}

// fits compares an answer with what a step expects. member is where they differ.
func (s *state) fits(e expectation, body any, step Step) (member string, ok bool) {
	if !e.HasAny {
		return "", true
	}
	wanted, err := s.fill(step, e.Body)
	if err != nil {
		return "expect", false
	}
	return differs(wanted, body, "body")
}

// differs returns the first place at which got lacks something of wanted. Objects may have further members.
func differs(wanted, got any, at string) (member string, ok bool) {
	switch w := wanted.(type) {
	case map[string]any:
		object, is := got.(map[string]any)
		if !is {
			return at, false
		}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			if _, has := object[name]; !has {
				return at + "." + name, false
			}
			if member, ok := differs(w[name], object[name], at+"."+name); !ok {
				return member, false
			}
		}
		return "", true
	case []any:
		array, is := got.([]any)
		if !is || len(array) != len(w) {
			return at, false
		}
		for i := range w {
			if member, ok := differs(w[i], array[i], at+"."+strconv.Itoa(i)); !ok {
				return member, false
			}
		}
		return "", true
	}
	one, err1 := json.Marshal(wanted)
	other, err2 := json.Marshal(got)
	return at, err1 == nil && err2 == nil && bytes.Equal(one, other)
}
