package endpoint

import "net/http"

// Compression is whether the answers of a row may be compressed. The length of a compressed answer tells whether two of its parts
// are alike. An observer who can place text in an answer could guess a secret in the same answer (BREACH).
type Compression uint8

// The choices.
const (
	// ByMethod compresses the answers to GET with credentials. Tokens, keys, codes and other secrets are answers to other
	// methods, where they are shown once.
	ByMethod Compression = iota
	// Uncompressed is for answers to GET that contain secrets, such as codes in messages or addresses that are secrets themselves.
	Uncompressed
	// Compressed is for long answers to other methods without any secret.
	Compressed
)

// Compressible reports whether answers of the row may be compressed.
func (e Endpoint) Compressible() bool {
	switch e.Compression {
	case Uncompressed:
		return false
	case Compressed:
		return true
	default:
		return e.Method == http.MethodGet && !e.Access.IsPublic()
	}
}
