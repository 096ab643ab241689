package qrbill

import "kontor/modules/invoices/qrbill/symbol"

// source is an opened file that shows its pages as grey pictures.
type source interface {
	pages() int
	// page shows a page, counted from 0. Finer asks for more detail than the
	// first look needs; the answer is nil when there is none to be had.
	page(index int, finer bool) (*symbol.Gray, error)
	// down tells how far down a page a code stands. The page may be stored
	// turned; only the order of the numbers of one page has a meaning.
	down(index int, code symbol.Code) float64
	close()
}

// open opens a file of a kind that can be read. The engine is for documents only.
func open(file []byte, kind string, e *engine, limits Limits) (source, error) {
	switch kind {
	case kindPDF:
		return e.openPDF(file, limits)
	case kindTIFF:
		return openTIFF(file, limits)
	default:
		return openPicture(file, kind, limits)
	}
}
