package binding

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// committed records the length of the log after a commit. As the hook it replaces SQLite's own checkpoints.
func committed(_ *libc.TLS, id, _, _ uintptr, frames int32) int32 {
	if v, ok := conns.Load(id); ok {
		v.(*Conn).frames = int(frames)
	}
	return lib.SQLITE_OK
}

// LogFrames returns the number of pages in the write-ahead log after this connection's last commit.
func (c *Conn) LogFrames() int { return c.frames }

// Checkpoint copies what it can from the log into the database without waiting for other connections. It returns how many
// frames the log has and how many of them are copied.
func (c *Conn) Checkpoint() (frames, copied int, err error) {
	out := libc.Xmalloc(c.tls, 8)
	defer libc.Xfree(c.tls, out)
	rc := lib.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, lib.SQLITE_CHECKPOINT_PASSIVE, out, out+4)
	if rc != lib.SQLITE_OK {
		return 0, 0, c.fail(rc)
	}
	return int(*(*int32)(at(out))), int(*(*int32)(at(out + 4))), nil
}

// EmptyLog copies the whole log into the database and truncates it. It waits for other connections no longer than the busy
// timeout.
func (c *Conn) EmptyLog() error {
	rc := lib.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, lib.SQLITE_CHECKPOINT_TRUNCATE, 0, 0)
	if rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

// KeepLog makes Close leave the log unchanged. Otherwise the last connection copies the log into the database and deletes it.
func (c *Conn) KeepLog() { c.keepLog(1) }

// DropLog reverses KeepLog.
func (c *Conn) DropLog() { c.keepLog(0) }

func (c *Conn) keepLog(on int32) {
	const arguments = 16 // bytes: an int and a pointer
	at := c.tls.Alloc(arguments)
	defer c.tls.Free(arguments)
	lib.Xsqlite3_db_config(c.tls, c.db, lib.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, libc.VaList(at, on, uintptr(0)))
}
