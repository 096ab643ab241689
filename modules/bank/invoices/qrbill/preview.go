package qrbill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kontor/modules/kit/sandbox"
)

// PreviewOptions are the options of a preview.
type PreviewOptions struct {
	Page   int    // counted from 1
	Width  int    // the maximum, in pixels; the height is at most twice as much
	Caller string // as in Options
}

// Picture is a page of a file as a picture.
type Picture struct {
	JPEG  []byte
	Pages int // of the file
}

// maxPreviewBytes bounds the JPEG of a preview.
const maxPreviewBytes = 4 << 20

// Preview renders a page of a PDF, or a JPEG or PNG, as a new picture: upright, on white, without metadata. It loads the file when a slot is
// free, and shares slots and workers with [Reader.Read]. It returns the same errors, and those of load unchanged.
func (r *Reader) Preview(ctx context.Context, load func() ([]byte, error), options PreviewOptions) (picture Picture, err error) {
	ctx, cancel := r.untilClosed(ctx)
	defer cancel()
	err = r.inSlot(ctx, options.Caller, 1, load, func(lease *sandbox.Lease, file []byte, kind string) error {
		picture, err = r.preview(ctx, lease, file, job{Kind: kind, Page: max(1, options.Page), Width: options.Width, Limits: r.limits, Time: r.limits.Time})
		return err
	})
	if r.isClosed() && (errors.Is(err, context.Canceled) || errors.Is(err, sandbox.ErrClosed)) {
		err = ErrBusy
	}
	return picture, err
}

// preview has a worker render the preview.
func (r *Reader) preview(ctx context.Context, lease *sandbox.Lease, file []byte, j job) (picture Picture, err error) {
	request, err := json.Marshal(j)
	if err != nil {
		lease.Release()
		return picture, fmt.Errorf("encode job: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, r.limits.Time+gracePeriod)
	defer cancel()
	answer, err := lease.Run(limited, request, file, func(part []byte) error {
		picture.JPEG = part
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return Picture{}, ctx.Err()
	case err != nil:
		return Picture{}, crashError(err)
	}
	var end outcome
	if err := json.Unmarshal(answer, &end); err != nil {
		return Picture{}, errorf(DamagedFile, "decode the answer of the worker: %w", err)
	}
	if err := end.err(); err != nil {
		return Picture{}, err
	}
	if !isJPEG(picture.JPEG) || len(picture.JPEG) > maxPreviewBytes { // a worker that a file has taken over may send anything
		return Picture{}, errorf(DamagedFile, "the worker has sent no picture")
	}
	picture.Pages = end.Pages
	return picture, nil
}
