package binding

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// VFS is the name of the file layer that all connections use. It is SQLite's own layer with some methods replaced, see
// [shim].
const VFS = "kontor"

// A shim between SQLite and its own file layer observes which writes and syncs fail, and why. SQLite itself reports a failure
// only to the current statement, and a failed checkpoint during the close of a connection not at all.
//
// The shim does not wrap files. SQLite's layer opens a file; then the pointer to the file's table of methods is replaced by
// one to a copy of that table, in which some methods are ours (file_methods.go). SQLite calls all other methods directly. The
// shim's own state of a file follows SQLite's part of the file structure, at stateOffset.
type shim struct {
	vfs         uintptr // ours, in C memory
	below       uintptr // SQLite's
	belowOpen   func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	stateOffset uintptr

	mu     sync.Mutex
	tables map[uintptr]*methods // by SQLite's table
}

// layer is the shim of the process, because SQLite's registry of layers is one for the process.
var layer = shim{tables: map[uintptr]*methods{}}

var registration struct {
	once sync.Once
	err  error
}

// Register registers the file layer with SQLite. [Open] calls it.
func Register() error {
	registration.once.Do(func() { registration.err = layer.register() })
	return registration.err
}

// register registers the shim under its name, as a copy of the default layer.
func (s *shim) register() error {
	tls := libc.NewTLS()
	defer tls.Close()
	s.below = lib.Xsqlite3_vfs_find(tls, 0)
	if s.below == 0 {
		return errors.New("SQLite has no file layer")
	}
	engine := (*lib.Tsqlite3_vfs)(at(s.below))
	s.belowOpen = function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](engine.FxOpen)
	const word = unsafe.Sizeof(uintptr(0))
	s.stateOffset = (uintptr(engine.FszOsFile) + word - 1) &^ (word - 1)

	name, err := libc.CString(VFS)
	if err != nil {
		return err
	}
	s.vfs = libc.Xmalloc(tls, types.Size_t(unsafe.Sizeof(lib.Tsqlite3_vfs{}))) // never freed, like the name
	if s.vfs == 0 {
		return errors.New("out of memory")
	}
	ours := (*lib.Tsqlite3_vfs)(at(s.vfs))
	*ours = *engine
	ours.FpNext, ours.FzName = 0, name
	ours.FszOsFile = int32(s.stateOffset + word)
	ours.FxOpen = funcPointer(openFile)
	if rc := lib.Xsqlite3_vfs_register(tls, s.vfs, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("register the file layer: result code %d", rc)
	}
	return nil
}

// function returns the Go function behind a function pointer of translated C code.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// A file is the shim's state of an open file of a database.
type file struct {
	path   string
	kind   Kind
	watch  *Watch   // nil when the database is not watched
	engine *methods // SQLite's
	unread *IOError // of the last read that failed
	pin    runtime.Pinner

	pages   *pages  // of the database file
	frames  *frames // of the log
	logPage int64   // size of the pages in the log, once it is known
}

// state returns the shim's part of an open file.
func state(p uintptr) *file {
	return *(**file)(at(p + layer.stateOffset))
}

// openFile is xOpen. The files of a database get our methods; temporary files keep SQLite's.
func openFile(tls *libc.TLS, _, name, p uintptr, flags int32, outFlags uintptr) int32 {
	s := &layer
	*(*uintptr)(at(p + s.stateOffset)) = 0
	rc := s.belowOpen(tls, s.below, name, p, flags, outFlags)
	kind := Kind(flags & (lib.SQLITE_OPEN_MAIN_DB | lib.SQLITE_OPEN_MAIN_JOURNAL | lib.SQLITE_OPEN_WAL))
	table := (*lib.Tsqlite3_file)(at(p))
	if rc != lib.SQLITE_OK || kind == 0 || name == 0 || table.FpMethods == 0 {
		return rc
	}
	f := &file{path: libc.GoString(name), kind: kind, engine: s.methods(tls, table.FpMethods)}
	f.watch = watched(f.path, kind)
	switch kind {
	case Database:
		f.pages = openPages(f.path)
	case Log:
		f.frames = openFrames(f.path)
	}
	// C memory holds the address, which the garbage collector does not see. The pin keeps the state alive and in place.
	f.pin.Pin(f)
	*(**file)(at(p + s.stateOffset)) = f
	table.FpMethods = f.engine.ours
	return rc
}
