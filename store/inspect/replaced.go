package inspect

import (
	"context"

	"kontor/store/audittrail"
	"kontor/store/query"
)

// besideRotations calls look, and again while the master key is replaced in the meantime: look has then compared a later state
// of the files with an earlier key. The key that a process reads and the state of the database that it sees are not of one moment.
func besideRotations(ctx context.Context, from Source, look func() error) error {
	const most = 5
	for n := 1; ; n++ {
		before := keyCheck(ctx, from)
		err := look()
		if err == nil || n == most || ctx.Err() != nil || keyCheck(ctx, from) == before {
			return err
		}
	}
}

// keyCheck returns the check value of the master key, or "" if it cannot be read.
func keyCheck(ctx context.Context, from Source) (value string) {
	f, err := from.open(ctx)
	if err != nil {
		return ""
	}
	defer f.Close()
	if err := f.Begin(ctx); err != nil {
		return ""
	}
	return audittrail.KeyCheckValue(ctx, query.NewView(f, 0))
}
