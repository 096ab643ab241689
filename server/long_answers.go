package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	// longAnswer is the size from which an answer counts against answerBudget, the memory for all that are waiting to be sent. An array
	// that is longer is read while it is written.
	longAnswer   = 1 << 20
	answerBudget = 256 << 20
	// arrayPart is what a stream of an array may hold.
	arrayPart = 4 << 20
	// arrayTime is the time for a whole array, also to a slow client.
	arrayTime = 5 * time.Minute
)

// newTurns returns the places of requests that read and encode long answers. More of them would take memory, and no less time.
func newTurns() chan struct{} { return make(chan struct{}, max(8, 2*runtime.GOMAXPROCS(0))) }

// TakeTurn implements [endpoint.Turns].
func (r *call) TakeTurn(ctx context.Context) error {
	if r.turn {
		return nil
	}
	select {
	case r.responder.server.turns <- struct{}{}:
		r.turn = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endTurn lets the next request read a long answer.
func (r *call) endTurn() {
	if r.turn {
		r.turn = false
		<-r.responder.server.turns
	}
}

// holdAnswer counts the memory of a long answer until it has been sent: clients that do not read must not fill the memory. It returns
// apierr.AnswerTooLarge, and apierr.Unavailable when too many wait.
func (s *Server) holdAnswer(r *call, length int) error {
	switch {
	case length > maxAnswer:
		return apierr.AnswerTooLarge
	case length <= longAnswer:
		return nil
	}
	conn := r.fiber.Context().Conn().(carrier)
	s.concurrency.held.Add(-int64(conn.hold(0)))
	if held := s.concurrency.held.Add(int64(length)); held > answerBudget {
		s.concurrency.held.Add(-int64(length))
		return apierr.Unavailable.Wrap(fmt.Errorf("%d bytes of answers wait to be sent", held))
	}
	conn.hold(length)
	return nil
}

// answerArray answers with an array that is read in parts. It reads the beginning before it answers, so that errors are answered as always.
func (s *Server) answerArray(r *call, status int, result endpoint.Result) error {
	a := &arrayEncoder{rest: result.Rest}
	a.text.WriteByte('[')
	if err := a.append(result.Body); err != nil {
		return apierr.ServerError.Wrap(err)
	}
	for !a.complete && a.text.Len() <= longAnswer {
		if err := a.next(&r.context); err != nil {
			return err
		}
	}
	if a.complete {
		return s.answerEncoded(r, &endpoint.Encoded{JSON: a.text.Bytes()})
	}
	s.writeHead(r, status)
	if r.fiber.Method() == http.MethodHead { // The engine would end the absent body of a stream with a line.
		r.fiber.Response().Header.SetContentLength(-1)
		return nil
	}
	if err := s.holdAnswer(r, arrayPart); err != nil {
		return err
	}
	later, cancel := context.WithTimeout(endpoint.Detach(context.Background(), &r.context), arrayTime)
	r.fiber.Response().SetBodyStream(&partStream{
		server: s, ctx: later, end: cancel, connection: r.fiber.Context().Conn(), requestID: r.RequestID,
		ready: bytes.Clone(a.text.Bytes()), next: a.part,
	}, -1)
	return nil
}

// arrayEncoder encodes an array in parts.
type arrayEncoder struct {
	rest     func(ctx context.Context) (entries any, err error)
	text     bytes.Buffer
	begun    bool // there are entries before the next one
	complete bool
}

// append encodes entries.
func (a *arrayEncoder) append(entries any) error {
	encoded, err := json.Marshal(entries, endpoint.Encoding)
	if err != nil {
		return err
	}
	if encoded = encoded[1 : len(encoded)-1]; len(encoded) == 0 {
		return nil
	}
	if a.begun {
		a.text.WriteByte(',')
	}
	a.begun = true
	a.text.Write(encoded)
	return nil
}

// next reads and encodes further entries, or the end.
func (a *arrayEncoder) next(ctx context.Context) error {
	entries, err := a.rest(ctx)
	switch {
	case err != nil:
		return err
	case entries == nil:
		a.complete = true
		a.text.WriteByte(']')
		return nil
	}
	return a.append(entries)
}

// part returns the next part of the text, and nothing at its end.
func (a *arrayEncoder) part(ctx context.Context) ([]byte, error) {
	a.text.Reset()
	for a.text.Len() == 0 && !a.complete {
		if err := a.next(ctx); err != nil {
			return nil, err
		}
	}
	return a.text.Bytes(), nil
}

// partStream is a body that is read while it is written: the next part is read when the client has taken the former one, so that the memory
// does not depend on the length.
type partStream struct {
	server     *Server
	ctx        context.Context // of [endpoint.Detach]
	end        func()
	connection net.Conn
	requestID  string

	ready []byte                                    // the part that the client has not taken
	next  func(ctx context.Context) ([]byte, error) // returns the next part, and nothing at the end
}

// Read returns the next bytes. An error ends the connection, so that the client recognizes the body as incomplete.
func (p *partStream) Read(to []byte) (int, error) {
	if len(p.ready) == 0 {
		part, err := p.read()
		if err != nil {
			p.server.Log.Warn("an answer was not completed", "request_id", p.requestID, "cause", err)
			return 0, err
		}
		if p.ready = part; len(part) == 0 {
			return 0, io.EOF
		}
	}
	if p.connection != nil { // The deadline of the engine covers the whole answer; a part has as much time.
		if err := p.connection.SetWriteDeadline(time.Now().Add(p.server.WriteTimeout)); err != nil {
			return 0, err
		}
	}
	n := copy(to, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// read reads the next part with the rights that the caller has now.
func (p *partStream) read() ([]byte, error) {
	if p.server.draining.Load() {
		return nil, apierr.Unavailable
	}
	ctx, err := endpoint.Continue(p.ctx)
	if err != nil {
		return nil, err
	}
	return p.next(ctx)
}

// Close ends the answer.
func (p *partStream) Close() error {
	p.end()
	return nil
}
