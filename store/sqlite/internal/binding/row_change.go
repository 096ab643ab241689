package binding

import (
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// A RowChange is a row that a statement is about to insert, update or delete. It is valid only during the call that receives it.
type RowChange struct {
	// Table is the name of the table. Its memory belongs to SQLite: copy what is kept.
	Table string
	// Inserts and Deletes say what happens; neither is set for an update.
	Inserts, Deletes bool
	// OldRow and NewRow are the row's number before and after. Only an update of an integer primary key changes it.
	OldRow, NewRow int64

	c *Conn
}

// Opaque stands for bytes, which a RowChange does not return.
type Opaque struct{}

// OnRowChange calls f, on the goroutine of the statement, before each change of a row by this connection: by statements, by foreign
// keys and by triggers. It is also called for changes that are undone later. Virtual tables and WITHOUT ROWID tables are left out.
// Call it before statements are compiled, and only once.
func (c *Conn) OnRowChange(f func(*RowChange)) {
	c.rowChanged, c.changing.c = f, c
	c.changed = libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(uintptr(0))))
	if c.changed == 0 {
		panic("out of memory")
	}
	lib.Xsqlite3_preupdate_hook(c.tls, c.db, funcPointer(preUpdate), c.id)
}

// preUpdate is SQLite's callback.
func preUpdate(tls *libc.TLS, id, _ uintptr, op int32, _, table uintptr, oldRow, newRow int64) {
	v, ok := conns.Load(id)
	if !ok {
		return
	}
	c := v.(*Conn)
	n := 0
	for *(*byte)(at(table + uintptr(n))) != 0 {
		n++
	}
	r := &c.changing
	r.Table = unsafe.String((*byte)(at(table)), n)
	r.Inserts, r.Deletes = op == lib.SQLITE_INSERT, op == lib.SQLITE_DELETE
	r.OldRow, r.NewRow = oldRow, newRow
	c.rowChanged(r)
	r.Table = ""
}

// Old returns a column of the row before the change: nil, int64, float64, string or [Opaque]. Columns are counted from 0, as the
// table declares them. There is no row before an insertion.
func (r *RowChange) Old(column int) any {
	if lib.Xsqlite3_preupdate_old(r.c.tls, r.c.db, int32(column), r.c.changed) != lib.SQLITE_OK {
		return Opaque{}
	}
	return r.value()
}

// New returns a column of the row after the change. There is no row after a deletion.
func (r *RowChange) New(column int) any {
	if lib.Xsqlite3_preupdate_new(r.c.tls, r.c.db, int32(column), r.c.changed) != lib.SQLITE_OK {
		return Opaque{}
	}
	return r.value()
}

func (r *RowChange) value() any {
	tls, p := r.c.tls, *(*uintptr)(at(r.c.changed))
	switch lib.Xsqlite3_value_type(tls, p) {
	case lib.SQLITE_INTEGER:
		return lib.Xsqlite3_value_int64(tls, p)
	case lib.SQLITE_FLOAT:
		return lib.Xsqlite3_value_double(tls, p)
	case lib.SQLITE_TEXT:
		text := lib.Xsqlite3_value_text(tls, p)
		return string(unsafe.Slice((*byte)(at(text)), int(lib.Xsqlite3_value_bytes(tls, p))))
	case lib.SQLITE_NULL:
		return nil
	}
	return Opaque{}
}
