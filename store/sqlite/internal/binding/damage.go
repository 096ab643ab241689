package binding

import (
	"strings"
	"sync"
	"sync/atomic"

	lib "modernc.org/sqlite/lib"
)

// lastDamage is what the engine, which has only a code for it, cannot say.
var lastDamage atomic.Pointer[PageError]

var damageListeners sync.Map // path of a database, as the engine writes it → func(*PageError)

// OnDamage has f called for each page of the database at path, or of its log, that is found damaged, on the goroutine that
// was at it. Call remove when the database is closed.
func OnDamage(path string, f func(*PageError)) (remove func(), err error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	damageListeners.Store(full, f)
	return func() { damageListeners.Delete(full) }, nil
}

// damaged reports a page, and returns what the engine is told.
func damaged(e *PageError) int32 {
	lastDamage.Store(e)
	if f, ok := damageListeners.Load(strings.TrimSuffix(e.Path, Log.suffix())); ok {
		f.(func(*PageError))(e)
	}
	return lib.SQLITE_IOERR_DATA
}
