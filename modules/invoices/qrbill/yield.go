package qrbill

import (
	"bytes"
	"errors"
	_ "unsafe" // for go:linkname

	_ "github.com/klippa-app/go-pdfium/webassembly" // holds the module
)

// pdfiumWasm is the module inside the library, which keeps it to itself.
//
//go:linkname pdfiumWasm github.com/klippa-app/go-pdfium/webassembly.pdfiumWasm
var pdfiumWasm []byte

// The Go runtime cannot interrupt compiled WebAssembly. While a page is parsed
// for a second, no garbage collection can begin, and with it the whole process
// stands still; not even a timer that would end the computation gets its turn.
// So the module is changed before it is compiled: every function counts down
// when it is entered, and at zero calls back into Go, where the runtime can do
// what it has to. That costs a few per cent; asking wazero to check for the end
// of a context costs five to ten times the run time.

// entriesPerYield is how many functions are entered between two calls into Go:
// well below a millisecond of work.
const entriesPerYield = 20_000

// yieldFunction is the imported function that is called; it does nothing there.
const (
	yieldModule = "env"
	yieldName   = "emscripten_notify_memory_growth"
)

// Sections and codes of the WebAssembly binary format.
const (
	wasmHeader      = 8
	sectionImport   = 2
	sectionGlobal   = 6
	sectionCode     = 10
	externFunction  = 0
	externTable     = 1
	externMemory    = 2
	externGlobal    = 3
	typeI32         = 0x7f
	opIf            = 0x04
	opEnd           = 0x0b
	opCall          = 0x10
	opGlobalGet     = 0x23
	opGlobalSet     = 0x24
	opI32Const      = 0x41
	opI32Eqz        = 0x45
	opI32Sub        = 0x6b
	blockWithoutOut = 0x40
	mutable         = 0x01
)

var errWasm = errors.New("unexpected form of the WebAssembly module")

// withYields adds the counting to every function of a module.
func withYields(module []byte) (out []byte, err error) {
	defer func() {
		if recover() != nil { // an index outside the module
			out, err = nil, errWasm
		}
	}()
	out = append(make([]byte, 0, len(module)*6/5), module[:wasmHeader]...)
	function, counter := -1, -1
	globals := 0
	for r := (&wasmReader{data: module, at: wasmHeader}); r.at < len(module); {
		id := r.byte()
		body := r.bytes(int(r.number()))
		switch id {
		case sectionImport:
			function, globals = findYield(body)
		case sectionGlobal:
			in := &wasmReader{data: body}
			count := in.number()
			counter = globals + int(count)
			body = append(appendNumber(nil, count+1), body[in.at:]...)
			body = append(body, typeI32, mutable, opI32Const)
			body = append(appendSigned(body, entriesPerYield), opEnd)
		case sectionCode:
			if function < 0 || counter < 0 {
				return nil, errWasm
			}
			body = countEntries(body, prologue(uint64(counter), uint64(function)))
		}
		out = append(appendNumber(append(out, id), uint64(len(body))), body...)
	}
	if function < 0 || counter < 0 {
		return nil, errWasm
	}
	return out, nil
}

// findYield returns the index of the imported function, and how many globals are imported.
func findYield(imports []byte) (function, globals int) {
	r, functions := &wasmReader{data: imports}, 0
	function = -1
	for range r.number() {
		module, name := r.bytes(int(r.number())), r.bytes(int(r.number()))
		switch r.byte() {
		case externFunction:
			if string(module) == yieldModule && string(name) == yieldName {
				function = functions
			}
			functions++
			r.number()
		case externTable:
			r.byte()
			r.limits()
		case externMemory:
			r.limits()
		case externGlobal:
			globals++
			r.bytes(2)
		}
	}
	return function, globals
}

// prologue is the code that stands at the beginning of every function.
func prologue(counter, function uint64) []byte {
	var b []byte
	get := func() { b = appendNumber(append(b, opGlobalGet), counter) }
	set := func() { b = appendNumber(append(b, opGlobalSet), counter) }
	get()
	b = append(b, opI32Const, 1, opI32Sub)
	set()
	get()
	b = append(b, opI32Eqz, opIf, blockWithoutOut)
	b = appendSigned(append(b, opI32Const), entriesPerYield)
	set()
	b = append(b, opI32Const, 0, opCall)
	return append(appendNumber(b, function), opEnd)
}

// countEntries puts the prologue behind the local variables of every function.
func countEntries(code, prologue []byte) []byte {
	r := &wasmReader{data: code}
	count := r.number()
	var out bytes.Buffer
	out.Grow(len(code) + int(count)*(len(prologue)+1))
	out.Write(appendNumber(nil, count))
	for range count {
		body := r.bytes(int(r.number()))
		locals := &wasmReader{data: body}
		for range locals.number() {
			locals.number()
			locals.byte()
		}
		out.Write(appendNumber(nil, uint64(len(body)+len(prologue))))
		out.Write(body[:locals.at])
		out.Write(prologue)
		out.Write(body[locals.at:])
	}
	return out.Bytes()
}

// wasmReader reads the parts of a module. It panics at the end of the data.
type wasmReader struct {
	data []byte
	at   int
}

func (r *wasmReader) byte() byte {
	r.at++
	return r.data[r.at-1]
}

func (r *wasmReader) bytes(n int) []byte {
	r.at += n
	return r.data[r.at-n : r.at]
}

// number reads an unsigned LEB128 number.
func (r *wasmReader) number() uint64 {
	var v uint64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

func (r *wasmReader) limits() {
	bounded := r.byte()&1 == 1
	r.number()
	if bounded {
		r.number()
	}
}

func appendNumber(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendSigned writes a positive number in signed LEB128, whose last byte keeps a bit for the sign.
func appendSigned(b []byte, v uint64) []byte {
	for v >= 0x40 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
