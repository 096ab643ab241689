package profile

import (
	"context"
	"fmt"

	"kontor/store"
)

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
	_, err := tx.Exec(ctx, insertViewStatement, v.ID, userID, v.List, v.Name, v.Query, v.CreatedAt)
	return err
}

func updateView(ctx context.Context, tx *store.Tx, v View) error {
	_, err := tx.Exec(ctx, updateViewStatement, v.ID, v.Query, v.ModifiedAt)
	return err
}

// deleteView reports whether the user had the view.
func deleteView(ctx context.Context, tx *store.Tx, userID, id string) (bool, error) {
	n, err := tx.Exec(ctx, deleteViewStatement, userID, id)
	return n > 0, err
}
