// Package probe finds out whether a database whose last write failed can write again.
package probe

import (
	"context"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
)

// size is the space that there must be: some hundred ordinary writes, so that readiness does not change with each small write
// that still fits.
const size = 256 << 10

// Write writes that much and deletes it again.
func Write(ctx context.Context, e engine.Engine) error {
	for _, value := range []string{strings.Repeat(" ", size), ""} {
		err := e.Write(ctx, func(tx engine.Tx) error {
			_, err := query.Exec(ctx, tx, engine.UpsertMeta, []any{engine.MetaWriteProbe, value})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
