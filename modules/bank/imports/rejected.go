package imports

import (
	"context"
	"net/http"
	"reflect"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/server/csvtable"
	"kontor/server/endpoint"
	"kontor/store"
)

// maxRejections is how many reasons are kept of an import. Further rejected rows are counted only.
const maxRejections = 10_000

// rejection is a reason why a row was rejected.
type rejection struct {
	line       int64
	field, key string
	args       apierr.Args
	recordID   string // the record that the row would have repeated; empty for none
}

// Rejected is a row of the table of rejected and skipped rows.
type Rejected struct {
	Line     int64  `json:"line"`
	Field    string `json:"field"`
	Message  string `json:"message"`
	RecordID string `json:"record_id"` // empty for none, and for one that the caller may not read
}

const selectRejections = `SELECT line, field, text_key, text_args, record_id FROM import_rejections WHERE import_id = $1 ORDER BY number`

// rejected answers with the rejected and skipped rows of an import as a table, with the reasons in the language of the request.
func (s *Service) rejected(ctx context.Context, r *endpoint.Request) error {
	id, err := types.ParseID(r.Params[0])
	if err != nil {
		return apierr.Invalid("id", "invalid.uuid")
	}
	if _, err := s.Get(ctx, OneInput{ID: id}); err != nil {
		return err
	}
	lang := endpoint.Language(ctx)
	rows, err := store.All(ctx, s.db, func(row store.Scanner) (Rejected, error) {
		var one Rejected
		var key, args string
		err := row.Scan(&one.Line, &one.Field, &key, &args, &one.RecordID)
		one.Message = s.Texts.Text(lang, key, decoded(args))
		return one, err
	}, selectRejections, id)
	if err == nil {
		err = s.hideRecords(ctx, rows)
	}
	if err != nil {
		return err
	}
	t := csvtable.New(reflect.TypeFor[Rejected](), endpoint.Encoding)
	body := t.AppendHeader(nil)
	for _, row := range rows {
		if body, err = t.Append(body, row); err != nil {
			return err
		}
	}
	response := r.Fiber.Response()
	response.SetStatusCode(http.StatusOK)
	response.Header.SetContentType(csvMedia + "; charset=utf-8; header=present")
	response.Header.Set(fiber.HeaderContentDisposition, `attachment; filename="rejected.csv"`)
	response.Header.Set(fiber.HeaderCacheControl, "no-store")
	response.SetBody(body)
	return nil
}

// hideRecords removes the ids of records that the caller may not read.
func (s *Service) hideRecords(ctx context.Context, rows []Rejected) error {
	var ids []string
	for _, row := range rows {
		if row.RecordID != "" {
			ids = append(ids, row.RecordID)
		}
	}
	readable, err := s.records.Readable(ctx, ids)
	for i := range rows {
		if !readable[rows[i].RecordID] {
			rows[i].RecordID = ""
		}
	}
	return err
}
