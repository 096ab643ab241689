package server

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/accept"
	"kontor/server/apierr"
	"kontor/server/csvtable"
	"kontor/server/endpoint"
)

const (
	csvMedia    = "text/csv"
	csvRows     = 100_000         // at most in one answer
	csvPage     = 1000            // rows that are read at once
	csvTime     = 5 * time.Minute // for one answer, also to a slow client
	csvByteMark = "\ufeff"        // spreadsheets recognise UTF-8 by it
)

// wantsCSV reports whether a request of a list prefers a table to JSON, and whether it wants a byte order mark.
func wantsCSV(r *call) (wanted, mark bool) {
	if !r.row.Handle.Listed() || len(r.fiber.Request().Header.Peek(fiber.HeaderAccept)) == 0 {
		return false, false
	}
	header := r.list(fiber.HeaderAccept)
	if !strings.Contains(strings.ToLower(header), csvMedia) {
		return false, false
	}
	best := accept.Best(header, fiber.MIMEApplicationJSON, csvMedia)
	return best.Value == csvMedia, best.Parameters["bom"] == "true"
}

// answerCSV answers a list as a table of all its rows: with the rights of the caller, the same filters and the same order. It
// reads the first page before it answers, so that errors are answered as always.
func (s *Server) answerCSV(ctx context.Context, r *call, mark bool) error {
	read, err := r.row.Handle.Rows(ctx, &r.request)
	if err != nil {
		return err
	}
	first, err := read(ctx, csvPage, 0)
	if err != nil {
		return err
	}
	head, release := r.fiber.Method() == http.MethodHead, func() {}
	if !head {
		if release, err = endpoint.BeginExport(ctx); err != nil {
			return err
		}
		endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "lists.export"}) // the row adds type and record
	}
	total := first.Rows().Total
	response := r.fiber.Response()
	response.SetStatusCode(http.StatusOK)
	response.Header.SetContentType(csvMedia + "; charset=utf-8; header=present")
	response.Header.Set(fiber.HeaderContentDisposition, `attachment; filename="`+csvName(r)+`"`)
	response.Header.Add(fiber.HeaderVary, fiber.HeaderAccept)
	response.Header.Set("X-Total-Rows", strconv.FormatInt(total, 10))
	if total > csvRows {
		response.Header.Set("X-Truncated-Rows", strconv.FormatInt(total-csvRows, 10))
	}
	if head { // The engine would end the absent body of a stream with a line.
		response.Header.SetContentLength(-1)
		return nil
	}
	later, cancel := context.WithTimeout(endpoint.Detach(context.Background(), ctx), csvTime)
	t := &csvStream{server: s, ctx: later, cancel: func() { cancel(); release() }, read: read, page: first, requestID: r.RequestID,
		connection: r.fiber.Context().Conn(), table: csvtable.New(r.row.Handle.RowType(), endpoint.Encoding), seen: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
	if mark {
		t.ready = append(t.ready, csvByteMark...)
	}
	t.ready = t.table.AppendHeader(t.ready)
	response.SetBodyStream(t, -1)
	return nil
}

// csvName returns the name of the file: the path's fixed segments and the day.
func csvName(r *call) string {
	var parts []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(r.row.Path, "/v1/"), "/") {
		if !strings.HasPrefix(segment, "{") {
			parts = append(parts, segment)
		}
	}
	return strings.Join(parts, "-") + "-" + r.Now.UTC().Format(time.DateOnly) + ".csv"
}

// csvStream is the body of a table. It reads the next page when the client has taken the former one, so that its memory does not
// depend on the number of rows.
type csvStream struct {
	server     *Server
	ctx        context.Context
	cancel     func()
	read       endpoint.ReadPage
	page       endpoint.RowPage // not written yet; nil at the end
	table      *csvtable.Writer
	connection net.Conn
	requestID  string

	ready   []byte // rows that the client has not taken
	buffer  []byte // space of ready
	offset  int64
	written int
	seed    maphash.Seed
	seen    map[uint64]struct{} // hashes of the ids of written rows: a row that was created meanwhile moves the others to the next page
}

// Read returns the next bytes of the table. An error ends the connection, so that the client recognises the table as incomplete.
func (t *csvStream) Read(p []byte) (int, error) {
	for len(t.ready) == 0 {
		if t.page == nil {
			return 0, io.EOF
		}
		if err := t.next(); err != nil {
			t.server.Log.Warn("a table was not completed", "request_id", t.requestID, "rows", t.written, "cause", err)
			return 0, err
		}
	}
	if t.connection != nil { // The deadline of the engine covers the whole answer; a page has as much time.
		if err := t.connection.SetWriteDeadline(time.Now().Add(t.server.WriteTimeout)); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// next writes the present page and reads the one after it.
func (t *csvStream) next() error {
	about, rows := t.page.Rows(), t.buffer[:0]
	for i := range about.Len() {
		if t.written == csvRows {
			break
		}
		begin := len(rows)
		var err error
		if rows, err = t.table.Append(rows, about.At(i)); err != nil {
			return err
		}
		hash := maphash.String(t.seed, t.table.Key())
		if _, twice := t.seen[hash]; twice {
			rows = rows[:begin]
			continue
		}
		t.seen[hash] = struct{}{}
		t.written++
	}
	t.ready, t.buffer = rows, rows
	t.offset += int64(about.Len())
	if !about.More || about.Len() == 0 || t.written == csvRows {
		t.page = nil
		return nil
	}
	if t.server.draining.Load() {
		return apierr.Unavailable
	}
	ctx, err := endpoint.Continue(t.ctx)
	if err != nil {
		return fmt.Errorf("continue with row %d: %w", t.offset, err)
	}
	page, err := t.read(ctx, csvPage, t.offset)
	if err != nil {
		return fmt.Errorf("read rows from %d: %w", t.offset, err)
	}
	t.page = page
	return nil
}

// Close ends the table.
func (t *csvStream) Close() error {
	t.cancel()
	return nil
}
