package qrbill

import "kontor/modules/bank/invoices/qrbill/symbol"

// source is an open file that renders its pages in shades of grey.
type source interface {
	pages() int
	// page renders a page, counted from 0. With finer, it renders more detail, or returns nil when there is no more.
	page(index int, finer bool) (*symbol.Gray, error)
	// position returns the vertical position of a code on the page in its intended orientation. Only comparisons within one
	// page are meaningful.
	position(index int, code symbol.Code) float64
	close()
}

// open opens a file of a readable kind. Only documents need the engine.
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
