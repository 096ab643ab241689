package qrbill

import (
	_ "embed"

	"github.com/klauspost/compress/zstd"
)

// packedEngine is the WebAssembly module of the library go-pdfium, without the functions that are not called, compressed: 1.8 MB
// instead of 5. A test makes it.
//
//go:embed pdfium.wasm.zst
var packedEngine []byte

// engineModule returns the WebAssembly module. It takes 15 ms, in a worker that starts.
func engineModule() ([]byte, error) {
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return reader.DecodeAll(packedEngine, nil)
}
