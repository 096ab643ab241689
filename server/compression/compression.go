// Package compression compresses bodies for the header Content-Encoding. It uses the fastest level of each coding: a server spends
// more on computing than on the network.
package compression

import (
	"bytes"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The codings, by their names in Content-Encoding.
const (
	Zstd = "zstd"
	Gzip = "gzip"
)

// Offered are the codings in the order of preference: zstd needs less time than gzip for a smaller result.
var Offered = []string{Zstd, Gzip}

// maxPooled is the largest buffer that is kept for other bodies, in bytes.
const maxPooled = 256 << 10

var (
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	gzips   = sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic(err) // The level is valid.
		}
		return w
	}}
)

// window bounds the memory of an encoder and of the decoders of clients (RFC 9659 allows 8 MiB).
const window = 512 << 10

// zstdEncoder is made with the first body, because an encoder has large tables.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // The options are valid.
	}
	return e
})

// Encode passes the compressed body to use, which must not keep it. It panics for a coding that is not among [Offered].
func Encode(coding string, body []byte, use func(compressed []byte)) {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	switch coding {
	case Zstd:
		buffer.Grow(len(body)/4 + 512)
		space := buffer.AvailableBuffer()
		*buffer = *bytes.NewBuffer(zstdEncoder().EncodeAll(body, space))
	case Gzip:
		w := gzips.Get().(*gzip.Writer)
		w.Reset(buffer)
		_, _ = w.Write(body) // A buffer returns no errors.
		_ = w.Close()
		gzips.Put(w)
	default:
		panic("compression: unknown coding " + coding)
	}
	use(buffer.Bytes())
	if buffer.Cap() <= maxPooled {
		buffers.Put(buffer)
	}
}
