// Package qrbill reads Swiss QR-bills: from the text of the code, from images
// and from PDF documents. It knows nothing of the rest of Kontor and can be
// used on its own:
//
//	reader := qrbill.NewReader(qrbill.Config{})
//	defer reader.Close(ctx)
//	result, err := reader.Read(ctx, file, qrbill.Options{})
//
// Parse takes the text of a code and answers with the bill and with what is
// wrong about it. Nothing is guessed, repaired or rounded: a value that cannot
// be read unambiguously is absent, and a Finding says so.
//
// Limits, honestly: HEIC photos are refused, because there is no decoder with a
// permissive licence in pure Go. Structured append (one payload spread over
// several symbols) is not read; the standard does not use it.
package qrbill
