// Package qrbill reads Swiss QR-bills from the text of a code, from images and from PDF documents. It depends on no other
// part of Kontor but package sandbox, and can be used as a library:
//
//	reader := qrbill.NewReader(qrbill.Config{})
//	defer reader.Close(ctx)
//	result, err := reader.Read(ctx, file, qrbill.Options{})
//
// Parse parses the text of a code and returns the bill and its violations of the standard. It does not guess, repair or
// round: an ambiguous value is absent, and a Finding reports it.
//
// Limitations: HEIC photos are rejected, because no decoder in pure Go has a permissive licence. Structured append (one
// payload in several symbols) is not supported; the standard does not use it.
package qrbill
