package qrbill

import (
	"runtime"
	"time"
)

// Limits limit the resources for one file.
type Limits struct {
	Bytes  int           // size of the file
	Pages  int           // pages of a document
	Pixels int           // pixels of one image or rendered page
	Memory int           // bytes for the pixels of one decoded image
	Time   time.Duration // elapsed time for the file
	Page   time.Duration // processor time for opening a PDF, and for rendering each of its pages
}

// Config configures a Reader. The zero value has sensible limits.
type Config struct {
	Limits Limits
	// Slots is the number of files that are read concurrently, each in its own process. Other files wait.
	Slots int
	// Wait is how long a file waits for a slot before ErrBusy, and the minimum time that it waits for a starting process.
	Wait time.Duration
	// CacheDir keeps the compiled PDF engine between starts. Without it, each Reader compiles the engine for its first PDF,
	// which takes some seconds.
	CacheDir string
	// Now returns the time, for rules that depend on the version of the standard. Nil means the clock of the system.
	Now func() time.Time
}

const (
	defaultBytes  = 20 << 20
	defaultPages  = 50
	defaultPixels = 60_000_000 // photos of common phones have up to 50 million
	defaultMemory = 192 << 20  // enough for a progressive JPEG in full colour with 12 megapixels
	defaultTime   = 20 * time.Second
	defaultPage   = 1500 * time.Millisecond
	defaultWait   = 10 * time.Second
)

func (c Config) withDefaults() Config {
	l := &c.Limits
	l.Bytes = orDefault(l.Bytes, defaultBytes)
	l.Pages = orDefault(l.Pages, defaultPages)
	l.Pixels = orDefault(l.Pixels, defaultPixels)
	l.Memory = orDefault(l.Memory, defaultMemory)
	l.Time = orDefault(l.Time, defaultTime)
	l.Page = orDefault(l.Page, defaultPage)
	c.Slots = orDefault(c.Slots, runtime.GOMAXPROCS(0))
	c.Wait = orDefault(c.Wait, defaultWait)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Memory of a worker.
const (
	// baseMemory covers the 64 MB steps in which the Go runtime allocates memory.
	baseMemory = 128 << 20
	// searchBytesPerPixel is for the copies of a page in several contrasts and sizes.
	searchBytesPerPixel = 8
	// residentAfterFile is more than a worker keeps after any but the largest files.
	residentAfterFile = 160 << 20
)

// documentMemory returns the memory for the engine, the file, and a page of the maximum size.
func (l Limits) documentMemory() int64 {
	return baseMemory + engineMemory + 3*int64(l.Bytes) + searchBytesPerPixel*min(maxPagePixels, int64(l.Pixels))
}

// pictureMemory returns the memory for the file, its decoder and a picture of the maximum size.
func (l Limits) pictureMemory() int64 {
	return baseMemory + 3*int64(l.Bytes) + int64(l.Memory) + searchBytesPerPixel*int64(l.Pixels)
}

func orDefault[T int | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}
