package binding

import (
	"context"
	"strings"
	"time"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// reserveChecksums reserves the bytes of the checksums in each page. It affects empty databases and the copies that VACUUM
// INTO makes; an existing database stays as it is.
func (c *Conn) reserveChecksums() {
	argument := c.tls.Alloc(8)
	defer c.tls.Free(8)
	*(*int32)(at(argument)) = checksumBytes
	lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_RESERVE_BYTES, argument)
}

// CopyTo writes the database to a new file whose pages have checksums, whether or not those of the database have.
func (c *Conn) CopyTo(path string) error {
	done, err := ExpectChecksums(path)
	if err != nil {
		return err
	}
	defer done()
	c.reserveChecksums()
	return c.Run("VACUUM INTO '" + strings.ReplaceAll(path, "'", "''") + "'")
}

// readTries is how often a page with a wrong checksum is read: beside a running server, a checkpoint may be writing it.
const readTries = 5

// VerifyPages compares all pages of the database file with their checksums, also those that no table uses. It returns how
// many it compared, and 0 for a database without checksums. The error is a *PageError for the first wrong page. The
// connection must have read something before.
func (c *Conn) VerifyPages(ctx context.Context) (compared int64, err error) {
	argument := c.tls.Alloc(8)
	defer c.tls.Free(8)
	if rc := lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, argument); rc != lib.SQLITE_OK {
		return 0, c.fail(rc)
	}
	p := *(*uintptr)(at(argument))
	f := state(p)
	if f == nil || f.pages == nil || f.pages.size.Load() == 0 {
		return 0, nil
	}
	last, err := c.pageCount()
	if err != nil {
		return 0, err
	}
	var logged map[int64]bool
	size := f.pages.size.Load()
	buffer := libc.Xmalloc(c.tls, types.Size_t(size))
	defer libc.Xfree(c.tls, buffer)
	for number := int64(1); number <= last && ctx.Err() == nil; number++ {
		offset := (number - 1) * size
		if offset == pendingByte { // SQLite never uses the page with its locks
			continue
		}
		for try := 1; ; try++ {
			rc := f.engine.read(c.tls, p, buffer, int32(size), offset)
			if rc == lib.SQLITE_IOERR_SHORT_READ {
				return compared, nil // the end
			}
			if rc != lib.SQLITE_OK {
				return compared, c.fail(rc)
			}
			if pageHolds(memory(buffer, size), number) {
				break
			}
			if try == readTries {
				if logged == nil {
					scan, err := ScanLog(f.path)
					if err != nil {
						return compared, err
					}
					logged = scan.pages
				}
				if logged[number] {
					break
				}
				damaged(&PageError{Path: f.path, Page: number})
				return compared, &PageError{Path: f.path, Page: number}
			}
			time.Sleep(10 * time.Millisecond)
		}
		compared++
	}
	return compared, ctx.Err()
}

// pageCount returns how many pages the database has in the running transaction.
func (c *Conn) pageCount() (n int64, err error) {
	s, err := c.Prepare("PRAGMA page_count")
	if err != nil {
		return 0, err
	}
	s.Begin()
	if _, err = s.Step(); err == nil {
		n = s.Int(0)
	}
	s.Reset()
	return n, err
}
