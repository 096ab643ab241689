package binding

import lib "modernc.org/sqlite/lib"

// AsWritten changes a page that was read in a transaction into what the file layer would write to the database file: a page
// that is still in the log has neither its checksum nor cleared unused bytes.
func (c *Conn) AsWritten(page []byte, number int64) {
	shared := c.pages()
	if shared == nil || shared.size.Load() != int64(len(page)) || (number-1)*int64(len(page)) == pendingByte {
		return
	}
	shared.scrub(page, number)
	sealPage(page, number)
}

// HasChecksums reports whether the pages of the database have checksums. The connection must have read something before.
func (c *Conn) HasChecksums() bool {
	shared := c.pages()
	return shared != nil && shared.size.Load() != 0
}

// pages returns the shared state of the database file, or nil.
func (c *Conn) pages() *pages {
	argument := c.tls.Alloc(8)
	defer c.tls.Free(8)
	if lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, argument) != lib.SQLITE_OK {
		return nil
	}
	if f := state(*(*uintptr)(at(argument))); f != nil {
		return f.pages
	}
	return nil
}
