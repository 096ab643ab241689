package imports

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The states of an import. An import is not shown while its file arrives.
const (
	uploading = "uploading"
	queued    = "queued"
	running   = "running"
	done      = "done"
	failed    = "failed"
)

// The choices for a row whose record exists.
const (
	skip   = "skip"
	update = "update"
	reject = "reject"
)

// Import is a file whose rows become records.
type Import struct {
	ID          string      `json:"id"`
	State       string      `json:"state" enum:"queued,running,done,failed"`
	DryRun      bool        `json:"dry_run" doc:"The import only counts: it changes nothing."`
	OnDuplicate string      `json:"on_duplicate" enum:"skip,update,reject"`
	SHA256      string      `json:"sha256" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"Digest of the file."`
	Size        int64       `json:"size" example:"4096" doc:"Bytes of the file."`
	Rows        int64       `json:"rows" example:"250" doc:"Rows of the file, without its header."`
	Done        int64       `json:"done" example:"250" doc:"Rows that were read so far."`
	Created     int64       `json:"created" example:"240" doc:"Rows that became records."`
	Updated     int64       `json:"updated" example:"0" doc:"Rows that changed existing records."`
	Duplicates  int64       `json:"duplicates" example:"8" doc:"Rows that were skipped, because their records exist."`
	Rejected    int64       `json:"rejected" example:"2" doc:"Rows that were refused; see GET /v1/imports/{id}/rejected."`
	Failure     *Failure    `json:"failure" doc:"Why the import failed. Its records stay: sent again, the file continues behind them."`
	CreatedAt   store.Time  `json:"created_at"`
	CreatedBy   string      `json:"created_by"`
	StartedAt   *store.Time `json:"started_at"`
	FinishedAt  *store.Time `json:"finished_at"`

	failure, failureArgs, keySealed string
	chunks, rejections              int64
}

// Failure is an error that ended an import.
type Failure struct {
	Code    string `json:"code" example:"common.quota_exceeded"`
	Message string `json:"message" example:"You have reached the limit."`
}

// EachUser names the caller who has sent the file.
func (i Import) EachUser(add func(id string)) { add(i.CreatedBy) }

const importsTable = "imports"

const columns = `
	id, state, dry_run, on_duplicate, sha256, size, row_count, done, created, updated, duplicates, rejected, failure, failure_args,
	key_sealed, chunks, rejections, created_at, created_by, started_at, finished_at`

func scan(row store.Scanner) (Import, error) {
	var i Import
	err := row.Scan(&i.ID, &i.State, &i.DryRun, &i.OnDuplicate, &i.SHA256, &i.Size, &i.Rows, &i.Done, &i.Created, &i.Updated, &i.Duplicates,
		&i.Rejected, &i.failure, &i.failureArgs, &i.keySealed, &i.chunks, &i.rejections, &i.CreatedAt, &i.CreatedBy, &i.StartedAt, &i.FinishedAt)
	return i, err
}

var importList = list.New(list.Source[Import]{
	From: importsTable, Columns: columns, ID: "id", Created: "created_at", Tables: []string{importsTable},
	Scan: func(row list.Row) (Import, error) { return scan(row) },
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "state", Type: list.Text, Column: "state"},
		{Name: "dry_run", Type: list.Bool, Column: "dry_run"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by", Index: list.ThenCreated},
	},
})

// ListInput holds the parameters of the list.
type ListInput struct {
	Query list.Params `query:"*"`
}

// OneInput names an import.
type OneInput struct {
	ID string `path:"id"`
}

// visible returns the condition of the imports that the caller may see: their own, and all for administrators.
func visible(caller *access.Caller) list.Where {
	if caller.Administrator() {
		return list.Where{SQL: "state <> 'uploading'"}
	}
	return list.Where{SQL: "state <> 'uploading' AND created_by = $1", Args: []any{caller.UserID}}
}

// List returns the imports of the caller; all of them for administrators.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Import], error) {
	page, err := importList.Page(ctx, s.db, in.Query, visible(access.From(ctx)))
	for i := range page.Data.Rows {
		s.explain(ctx, &page.Data.Rows[i])
	}
	return page, err
}

const selectImport = `SELECT ` + columns + ` FROM imports WHERE id = $1 AND state <> 'uploading'`

// Get returns an import of the caller. It returns apierr.ImportNotFound, also for imports of other users.
func (s *Service) Get(ctx context.Context, in OneInput) (Import, error) {
	i, err := scan(s.db.QueryRow(ctx, selectImport, in.ID))
	caller := access.From(ctx)
	if errors.Is(err, store.ErrNotFound) || err == nil && i.CreatedBy != caller.UserID && !caller.Administrator() {
		return Import{}, apierr.ImportNotFound
	}
	s.explain(ctx, &i)
	return i, err
}

// explain renders the failure of an import in the language of the request.
func (s *Service) explain(ctx context.Context, i *Import) {
	if i.failure != "" {
		i.Failure = &Failure{i.failure, s.Texts.Text(endpoint.Language(ctx), "error."+i.failure, decoded(i.failureArgs))}
	}
}

// encoded returns the values of a text for a column.
func encoded(args apierr.Args) string {
	if len(args) == 0 {
		return ""
	}
	text, err := json.Marshal(map[string]any(args), json.Deterministic(true))
	if err != nil {
		return "" // the text is shown without them
	}
	return string(text)
}

func decoded(args string) map[string]any {
	var values map[string]any
	if args == "" || json.Unmarshal([]byte(args), &values) != nil {
		return nil
	}
	return values
}
