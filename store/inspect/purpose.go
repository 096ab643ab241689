package inspect

import (
	"context"

	"kontor/store/engine"
	"kontor/store/query"
)

// Purpose says what the data of a database is for. The first start decides it, and backups and copies keep it.
type Purpose string

// The purposes of data.
const (
	Production Purpose = "production"
	// Sandbox is data that is there to be thrown away: its clock moves, and a reset forgets changes and brings erased records back.
	Sandbox Purpose = "sandbox"
)

// PurposeOf returns the purpose of the database at a place, which may be served meanwhile. The master key is not needed.
func PurposeOf(ctx context.Context, from Source) (Purpose, error) {
	f, err := from.open(ctx)
	if err != nil {
		return "", err
	}
	defer f.Close()
	purpose, _, err := StatedPurpose(ctx, f)
	return purpose, err
}

// StatedPurpose returns the purpose of an open database. stated is false for a database that does not say: it was created by an
// earlier version, and counts as production.
func StatedPurpose(ctx context.Context, s engine.Source) (purpose Purpose, stated bool, err error) {
	text, stated, err := query.Meta(ctx, query.NewView(s, 0), engine.MetaPurpose)
	if err != nil || !stated {
		return Production, false, err
	}
	return Purpose(text), true, nil
}
