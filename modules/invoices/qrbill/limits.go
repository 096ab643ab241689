package qrbill

import (
	"runtime"
	"time"
)

// Limits bound what one file may cost.
type Limits struct {
	Bytes  int           // size of the file
	Pages  int           // pages searched in one document
	Pixels int           // of one image, or of one rendered page
	Memory int           // bytes for the pixels of one decoded image
	Time   time.Duration // for the whole file
	Page   time.Duration // of computing, for opening a PDF and for showing one page of it
}

// Config sets up a Reader. The zero value has sensible limits.
type Config struct {
	Limits Limits
	// Slots is how many files are read at the same time, each in a process of its own; the others wait.
	Slots int
	// Wait is how long a file waits for a slot before ErrBusy, and at least for a process that is being started.
	Wait time.Duration
	// CacheDir keeps the compiled PDF engine between starts; without it each
	// Reader compiles anew at the first PDF, which takes some seconds.
	CacheDir string
}

const (
	defaultBytes  = 20 << 20
	defaultPages  = 50
	defaultPixels = 60_000_000 // photos of common telephones have up to 50 million
	defaultMemory = 192 << 20  // of pixels, while an image is decoded: 12 megapixels of a progressive JPEG in full colour
	defaultTime   = 20 * time.Second
	defaultPage   = 1500 * time.Millisecond
	defaultWait   = 5 * time.Second
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
	return c
}

// What a worker may take.
const (
	// baseMemory is for the steps in which the Go runtime takes memory, of 64 MB.
	baseMemory = 128 << 20
	// workPixels is how many bytes the search may have for a pixel: the page in several shades and sizes.
	workPixels = 8
	// residentAfterFile is more than a worker keeps after all files but the largest.
	residentAfterFile = 160 << 20
)

// documentMemory is for the engine, the file, and a page of the largest size.
func (l Limits) documentMemory() int64 {
	return baseMemory + engineMemory + 3*int64(l.Bytes) + workPixels*min(maxPagePixels, int64(l.Pixels))
}

// pictureMemory is for the file, its decoder and a picture of the largest size.
func (l Limits) pictureMemory() int64 {
	return baseMemory + 3*int64(l.Bytes) + int64(l.Memory) + workPixels*int64(l.Pixels)
}

func orDefault[T int | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}
