package profile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The limits of saved views.
const (
	maxViews     = 200 // of a user
	maxViewList  = 200 // characters
	maxViewName  = 60
	maxViewQuery = 2000
)

// View is a list of the console as a user has saved it: filters, order, columns and rows of a page.
type View struct {
	ID         string     `json:"id"`
	List       string     `json:"list" doc:"Path of the list in the console." example:"/customers"`
	Name       string     `json:"name" example:"In review"`
	Query      string     `json:"query" doc:"Query of the list's address." example:"kyc_status=in_review&sort=created_at"`
	CreatedAt  store.Time `json:"created_at"`
	ModifiedAt store.Time `json:"modified_at"`
}

// ViewInput is a view to save.
type ViewInput struct {
	List  string `json:"list" example:"/customers" doc:"Path of the list in the console."`
	Name  string `json:"name" example:"In review"`
	Query string `json:"query" example:"kyc_status=in_review&sort=created_at" doc:"Query of the list's address."`
}

// Validate checks the lengths, and that the list is a path.
func (in *ViewInput) Validate(v *apierr.Fields) {
	in.List = validate.Required(v, "list", in.List, maxViewList)
	in.Name = validate.Required(v, "name", in.Name, maxViewName)
	in.Query = validate.Line(v, "query", in.Query, maxViewQuery)
	if in.List != "" && (!strings.HasPrefix(in.List, "/") || strings.HasPrefix(in.List, "//")) {
		v.Add("list", "invalid.console_path")
	}
}

// views lists the views of the caller.
func (s *Service) views(ctx context.Context, in list.Input) (list.Page[View], error) {
	return viewList.Page(ctx, s.db, in.Query, list.Where{SQL: "user_id = $1", Args: []any{access.From(ctx).UserID}})
}

// SaveView saves a view of the caller. It replaces the view of the list with the same name. It returns apierr.TooManyViews.
func (s *Service) SaveView(ctx context.Context, in ViewInput) (View, error) {
	var saved View
	userID := access.From(ctx).UserID
	err := s.changeViews(ctx, "profile.save_view", func(tx *store.Tx) error {
		now := tx.Now()
		saved = View{ID: store.NewID(), List: in.List, Name: in.Name, Query: in.Query, CreatedAt: now, ModifiedAt: now}
		former, err := selectView(ctx, tx, userID, in.List, in.Name)
		switch {
		case err == nil:
			saved.ID, saved.CreatedAt = former.ID, former.CreatedAt
			return updateView(ctx, tx, saved)
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		count, err := countViews(ctx, tx, userID)
		if err != nil {
			return err
		}
		if count >= maxViews {
			return apierr.TooManyViews
		}
		return insertView(ctx, tx, userID, saved)
	})
	return saved, err
}

// RemoveView deletes a view of the caller. It returns apierr.ViewNotFound, also for a view of another user.
func (s *Service) RemoveView(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	err := s.changeViews(ctx, "profile.remove_view", func(tx *store.Tx) error {
		found, err := deleteView(ctx, tx, access.From(ctx).UserID, in.ID)
		if err == nil && !found {
			return apierr.ViewNotFound
		}
		return err
	})
	return endpoint.Confirm(ctx, s.texts, "profile.view_removed"), err
}

// changeViews runs a change of the caller's views in a transaction with its audit entry.
func (s *Service) changeViews(ctx context.Context, action string, change func(tx *store.Tx) error) error {
	userID := access.From(ctx).UserID
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := requireEnabled(ctx, tx, userID); err != nil {
			return err
		}
		return proof.Change(ctx, tx, action, userID, func() error { return change(tx) })
	})
}

const viewColumns = "id, list, name, query, created_at, modified_at"

func scanView(row records.Row) (v View, err error) {
	err = row.Scan(&v.ID, &v.List, &v.Name, &v.Query, &v.CreatedAt, &v.ModifiedAt)
	return v, err
}

var viewList = list.New(list.Source[View]{
	From: "list_views", Columns: viewColumns, ID: "id", Created: "created_at", Tables: []string{"list_views"}, Scan: scanView,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "list", Type: list.Text, Column: "list"},
		{Name: "name", Type: list.Text, Column: "name"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at"},
	},
})

const (
	selectViewStatement  = `SELECT ` + viewColumns + ` FROM list_views WHERE user_id = $1 AND list = $2 AND name = $3`
	selectViewsStatement = `SELECT ` + viewColumns + ` FROM list_views WHERE user_id = $1 ORDER BY list, name`
	countViewsStatement  = `SELECT COUNT(*) FROM list_views WHERE user_id = $1`
	insertViewStatement  = `
		INSERT INTO list_views (id, user_id, list, name, query, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $6)`
	updateViewStatement = `UPDATE list_views SET query = $2, modified_at = $3 WHERE id = $1`
	deleteViewStatement = `DELETE FROM list_views WHERE user_id = $1 AND id = $2`
	deleteViews         = `DELETE FROM list_views WHERE user_id = $1`
)

// selectView returns store.ErrNotFound if the user has no view of the list with the name.
func selectView(ctx context.Context, q store.Querier, userID, list, name string) (View, error) {
	return scanView(q.QueryRow(ctx, selectViewStatement, userID, list, name))
}

// selectViews returns all views of a user, by list and name.
func selectViews(ctx context.Context, q store.Querier, userID string) ([]View, error) {
	views, err := store.All(ctx, q, scanView, selectViewsStatement, userID)
	if err != nil {
		return nil, fmt.Errorf("read views: %w", err)
	}
	return views, nil
}

func countViews(ctx context.Context, q store.Querier, userID string) (n int, err error) {
	err = q.QueryRow(ctx, countViewsStatement, userID).Scan(&n)
	return n, err
}

func insertView(ctx context.Context, tx *store.Tx, userID string, v View) error {
	return tx.Run(ctx, insertViewStatement, v.ID, userID, v.List, v.Name, v.Query, v.CreatedAt)
}

func updateView(ctx context.Context, tx *store.Tx, v View) error {
	return tx.Run(ctx, updateViewStatement, v.ID, v.Query, v.ModifiedAt)
}

// deleteView reports whether the user had the view.
func deleteView(ctx context.Context, tx *store.Tx, userID, id string) (bool, error) {
	n, err := tx.Exec(ctx, deleteViewStatement, userID, id)
	return n > 0, err
}
