package qrbill

import (
	"context"

	"kontor/modules/invoices/qrbill/symbol"
)

// source is an opened file that shows its pages as grey pictures.
type source interface {
	pages() int
	// page shows a page, counted from 0. Finer asks for more detail than the
	// first look needs; the answer is nil when there is none to be had.
	page(ctx context.Context, index int, finer bool) (*symbol.Gray, error)
	// down tells how far down a page a code stands. The page may be stored
	// turned; only the order of the numbers of one page has a meaning.
	down(index int, code symbol.Code) float64
	close()
}

// open finds out what a file is and opens it.
func (r *Reader) open(ctx context.Context, file []byte) (source, error) {
	kind, readable := sniff(file)
	switch {
	case !readable:
		return nil, &Error{Reason: UnsupportedFile, Format: kind}
	case kind == kindPDF:
		return r.openPDF(ctx, file)
	case kind == kindTIFF:
		return openTIFF(file, r.limits)
	default:
		return openPicture(file, kind, r.limits)
	}
}
