package server

import (
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/accept"
	"kontor/server/csvtable"
	"kontor/server/endpoint"
)

const (
	csvMedia     = "text/csv"
	csvRows      = 100_000         // at most in one answer
	csvFirstRows = 20              // rows of the first part
	csvMaxRows   = 200             // rows of a part at most
	csvPart      = 256 << 10       // bytes of a part, about: the rows of the next one follow from the former, which bounds the memory
	csvTime      = 5 * time.Minute // for one answer, also to a slow client
	csvByteMark  = "\ufeff"        // spreadsheets recognise UTF-8 by it
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
	first, err := read(ctx, csvFirstRows, 0)
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
	t := &tableRows{
		read: read, page: first, table: csvtable.New(r.row.Handle.RowType(), endpoint.Encoding),
		seen: map[uint64]struct{}{}, seed: maphash.MakeSeed(),
	}
	var begin []byte
	if mark {
		begin = append(begin, csvByteMark...)
	}
	response.SetBodyStream(&partStream{
		server: s, ctx: later, end: func() { cancel(); release() }, connection: r.fiber.Context().Conn(), requestID: r.RequestID,
		ready: t.table.AppendHeader(begin), next: t.part,
	}, -1)
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

// tableRows reads the rows of a table page by page.
type tableRows struct {
	read  endpoint.ReadPage
	page  endpoint.RowPage // not written yet; nil: read the next one
	table *csvtable.Writer

	text     []byte // of the former part
	last     int    // rows of the former part
	offset   int64
	written  int
	complete bool
	seed     maphash.Seed
	seen     map[uint64]struct{} // hashes of the ids of written rows: a row that was created meanwhile moves the others to the next page
}

// part returns the next rows of the table, and nothing at its end.
func (t *tableRows) part(ctx context.Context) ([]byte, error) {
	rows := t.nextRows()
	t.text = t.text[:0]
	for len(t.text) == 0 && !t.complete {
		if t.page == nil {
			page, err := t.read(ctx, rows, t.offset)
			if err != nil {
				return nil, fmt.Errorf("read rows from %d: %w", t.offset, err)
			}
			t.page = page
		}
		if err := t.append(t.page.Rows()); err != nil {
			return nil, err
		}
		t.page = nil
	}
	return t.text, nil
}

// nextRows returns how many rows fit into the next part, if they are as long as those of the former.
func (t *tableRows) nextRows() int {
	if t.last == 0 {
		return csvFirstRows
	}
	return min(max(t.last*csvPart/max(len(t.text), 1), 1), csvMaxRows)
}

// append writes the rows of a page.
func (t *tableRows) append(page endpoint.Rows) error {
	for i := range page.Len() {
		if t.written == csvRows {
			break
		}
		begin := len(t.text)
		var err error
		if t.text, err = t.table.Append(t.text, page.At(i)); err != nil {
			return err
		}
		hash := maphash.String(t.seed, t.table.Key())
		if _, twice := t.seen[hash]; twice {
			t.text = t.text[:begin]
			continue
		}
		t.seen[hash] = struct{}{}
		t.written++
	}
	t.last = page.Len()
	t.offset += int64(page.Len())
	t.complete = !page.More || page.Len() == 0 || t.written == csvRows
	return nil
}
