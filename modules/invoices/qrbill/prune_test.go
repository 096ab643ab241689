package qrbill

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// engineCalls are the functions of PDFium that this package calls, through the library. Those of the C runtime come on top.
var engineCalls = strings.Fields(`
	FPDF_InitLibrary FPDF_DestroyLibrary FPDF_GetLastError
	FPDF_LoadDocument FPDF_LoadMemDocument FPDF_LoadMemDocument64 FPDF_LoadCustomDocument FPDF_CloseDocument
	FPDF_GetPageCount FPDF_LoadPage FPDF_ClosePage FPDF_GetPageWidthF FPDF_GetPageHeightF FPDF_RenderPageBitmap
	FPDFBitmap_CreateEx FPDFBitmap_FillRect FPDFBitmap_GetStride FPDFBitmap_GetHeight FPDFBitmap_GetBuffer FPDFBitmap_Destroy`)

// Sections of a WebAssembly module, see the specification of version 1, chapter 5.
const (
	importSection  = 2
	exportSection  = 7
	elementSection = 9
	codeSection    = 10
)

// prune replaces the bodies of functions that engineCalls cannot reach with a trap. A third of the code is for forms, texts and
// changes of documents. A function whose address is taken counts as reached, since any indirect call may call it.
func prune(module []byte) (pruned []byte, err error) {
	defer func() { // the reader panics at the end of a module that is cut off
		if p := recover(); p != nil {
			err = fmt.Errorf("read the module: %v", p)
		}
	}()
	imported, reached := 0, []int(nil)
	pruned = append(pruned, module[:8]...)
	for r := (wasmReader{module, 8}); r.at < len(module); {
		begin := r.at
		id, size := r.byte(), r.number()
		section := wasmReader{module[r.at : r.at+size], 0}
		r.at += size
		switch id {
		case importSection:
			for range section.number() {
				section.text()
				section.text()
				if kind := section.byte(); kind != 0 {
					return nil, fmt.Errorf("an import of kind %d", kind)
				}
				section.number()
				imported++
			}
		case exportSection:
			for range section.number() {
				name, kind, index := section.text(), section.byte(), section.number()
				if kind == 0 && (slices.Contains(engineCalls, name) || !strings.HasPrefix(name, "FPDF") && !strings.HasPrefix(name, "FORM")) {
					reached = append(reached, index)
				}
			}
		case elementSection:
			for range section.number() {
				if kind := section.number(); kind != 0 {
					return nil, fmt.Errorf("a table of kind %d", kind)
				}
				section.instruction(nil) // the offset
				section.instruction(nil) // its end
				for range section.number() {
					reached = append(reached, section.number())
				}
			}
		case codeSection:
			code := section.prunedCode(imported, reached)
			pruned = append(binary.AppendUvarint(append(pruned, id), uint64(len(code))), code...)
			continue
		}
		pruned = append(pruned, module[begin:r.at]...)
	}
	return pruned, nil
}

// prunedCode returns the code section with traps for what the functions do not reach. Imported functions have the first numbers.
func (r *wasmReader) prunedCode(imported int, reached []int) []byte {
	bodies := make([][]byte, r.number())
	for i := range bodies {
		size := r.number()
		bodies[i] = r.b[r.at : r.at+size]
		r.at += size
	}
	seen := make([]bool, imported+len(bodies))
	for len(reached) > 0 {
		next := reached[len(reached)-1]
		reached = reached[:len(reached)-1]
		if !seen[next] && next >= imported {
			reached = append(reached, callees(bodies[next-imported])...)
		}
		seen[next] = true
	}
	trap := []byte{0, 0x00, 0x0b} // no variables, unreachable, end
	code := binary.AppendUvarint(nil, uint64(len(bodies)))
	for i, body := range bodies {
		if !seen[imported+i] {
			body = trap
		}
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	return code
}

// callees returns the functions that a body calls by their numbers.
func callees(body []byte) (all []int) {
	r := wasmReader{body, 0}
	for range r.number() { // variables
		r.number()
		r.byte()
	}
	for r.at < len(body) {
		r.instruction(func(callee int) { all = append(all, callee) })
	}
	return all
}

// wasmReader reads the binary format.
type wasmReader struct {
	b  []byte
	at int
}

func (r *wasmReader) byte() byte { r.at++; return r.b[r.at-1] }

func (r *wasmReader) text() string {
	size := r.number()
	r.at += size
	return string(r.b[r.at-size : r.at])
}

// number reads a number in the format LEB128. The value of a negative one is wrong.
func (r *wasmReader) number() (value int) {
	for shift := 0; ; shift += 7 {
		part := r.byte()
		if value |= int(part&0x7f) << shift; part < 0x80 {
			return value
		}
	}
}

// instruction reads an instruction with its operands. It calls found with the function that the instruction calls or takes the
// address of.
func (r *wasmReader) instruction(found func(function int)) {
	switch code := r.byte(); {
	case code == 0x10, code == 0xd2: // call, ref.func
		found(r.number())
	case code == 0x0e: // br_table
		for range r.number() + 1 {
			r.number()
		}
	case code == 0x11, code >= 0x28 && code <= 0x3e: // call_indirect, loads and stores
		r.number()
		r.number()
	case code >= 0x02 && code <= 0x04, code == 0x0c, code == 0x0d, code >= 0x20 && code <= 0x26, code == 0x3f, code == 0x40, code == 0x41, code == 0x42, code == 0xd0:
		r.number() // blocks, branches, variables and tables, size of the memory, integers
	case code == 0x1c: // select with types
		r.at += r.number()
	case code == 0x43:
		r.at += 4 // float32
	case code == 0x44:
		r.at += 8 // float64
	case code == 0xfc:
		r.extended()
	case code >= 0x06 && code <= 0x09, code == 0x12, code == 0x13, code >= 0x14 && code <= 0x19, code > 0xd2:
		panic(fmt.Sprintf("the instruction %#x is not known", code))
	}
}

// extended reads the operands of an instruction that begins with 0xfc: conversions, and copies of memory and tables.
func (r *wasmReader) extended() {
	operands := map[int]int{8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}
	code := r.number()
	if code > 17 {
		panic(fmt.Sprintf("the instruction 0xfc %d is not known", code))
	}
	for range operands[code] {
		r.number()
	}
}
