package binding

import (
	"strings"
	"sync"
	"sync/atomic"

	lib "modernc.org/sqlite/lib"
)

// lastDamage is the last damaged page. SQLite has only a result code for it.
var lastDamage atomic.Pointer[PageError]

var damageListeners sync.Map // path of a database, as SQLite writes it → func(*PageError)

// OnDamage registers f, which is called for each damaged page of the database at path or of its log, on the goroutine that
// read it. Call remove when the database is closed.
func OnDamage(path string, f func(*PageError)) (remove func(), err error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	damageListeners.Store(full, f)
	return func() { damageListeners.Delete(full) }, nil
}

// damaged reports a page and returns the result code for SQLite.
func damaged(e *PageError) int32 {
	lastDamage.Store(e)
	if f, ok := damageListeners.Load(strings.TrimSuffix(e.Path, Log.suffix())); ok {
		f.(func(*PageError))(e)
	}
	return lib.SQLITE_IOERR_DATA
}
