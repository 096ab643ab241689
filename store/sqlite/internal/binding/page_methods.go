package binding

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// beforeWrite clears the unused bytes of a page that is about to be written, and writes its checksum.
func (p *pages) beforeWrite(buffer uintptr, n int32, offset int64) {
	if offset == 0 {
		p.learn(memory(buffer, int64(n)))
	}
	if number, ok := p.number(n, offset); ok {
		page := memory(buffer, int64(n))
		p.scrub(page, number)
		sealPage(page, number)
		p.forget(number)
	}
}

// afterRead compares a page that was read.
func (p *pages) afterRead(buffer uintptr, n int32, offset int64) int32 {
	page := memory(buffer, int64(n))
	if offset == 0 {
		p.learn(page)
		if p.size.Load() == 0 && lostHeader(page) {
			return damaged(&PageError{Path: p.path, Page: 1})
		}
	}
	if number, ok := p.number(n, offset); ok && !pageHolds(page, number) {
		return damaged(&PageError{Path: p.path, Page: number})
	}
	return lib.SQLITE_OK
}

// fetchPage is xFetch: it returns a page in the mapping of the file, or none.
func fetchPage(tls *libc.TLS, p uintptr, offset int64, n int32, result uintptr) int32 {
	f := state(p)
	rc := f.engine.fetch(tls, p, offset, n, result)
	if rc != lib.SQLITE_OK || f.pages == nil {
		return rc
	}
	page := *(*uintptr)(at(result))
	if page == 0 {
		return rc
	}
	number, ok := f.pages.number(n, offset)
	if !ok || f.pages.known(number) {
		return rc
	}
	if pageHolds(memory(page, int64(n)), number) {
		f.pages.note(number)
		return rc
	}
	f.engine.unfetch(tls, p, offset, page)
	*(*uintptr)(at(result)) = 0
	return damaged(&PageError{Path: f.path, Page: number})
}

// fileTraits is xDeviceCharacteristics. Without SUBPAGE_READ, SQLite always reads whole pages, which can be compared.
// Otherwise it reads the pages of long values in part.
func fileTraits(tls *libc.TLS, p uintptr) int32 {
	f := state(p)
	traits := f.engine.traits(tls, p)
	if f.pages != nil && f.pages.size.Load() != 0 {
		traits &^= lib.SQLITE_IOCAP_SUBPAGE_READ
	}
	return traits
}
