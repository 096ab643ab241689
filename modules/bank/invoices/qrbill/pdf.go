package qrbill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"kontor/modules/bank/invoices/qrbill/symbol"
	"kontor/modules/kit/sandbox"
)

const (
	pointsPerInch = 72
	firstDPI      = 150 // at least two pixels per module for codes of the standard size
	finerDPI      = 250
	// maxPagePixels limits a rendered page; larger pages are scaled down.
	maxPagePixels = 9_000_000
	// maxPagePoints is the maximum length of a side: three times that of an A0 sheet.
	maxPagePoints = 10_000
)

// document is a PDF in an instance of the engine of its own.
type document struct {
	pdfium.Pdfium
	memory *linearMemory
	broken bool
	ref    references.FPDF_DOCUMENT
	count  int
	limits Limits
}

// openPDF opens a document without a password. It only renders pages, and ignores scripts, actions and attachments.
func (e *engine) openPDF(file []byte, limits Limits) (*document, error) {
	// Bytes before the header shift all offsets. Without them, the engine does not have to repair the file.
	if at := bytes.Index(file[:min(len(file), pdfHeaderWindow)], []byte("%PDF-")); at > 0 {
		file = file[at:]
	}
	d, err := e.newDocument(limits)
	if err != nil {
		return nil, err
	}
	err = d.limited(func() error {
		opened, err := d.OpenDocument(&requests.OpenDocument{File: &file})
		if err != nil {
			return openError(err)
		}
		d.ref = opened.Document
		count, err := d.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: d.ref})
		if err != nil {
			return errorf(DamagedFile, "count pages: %w", err)
		}
		d.count = count.PageCount
		return nil
	})
	if err == nil && d.count <= 0 {
		err = errorf(DamagedFile, "PDF without pages")
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func openError(err error) error {
	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword), errors.Is(err, pdfiumerrors.ErrSecurity):
		return &Error{Reason: EncryptedFile, cause: err}
	default:
		return errorf(DamagedFile, "open PDF: %w", err)
	}
}

func (d *document) pages() int { return d.count }

func (d *document) position(_ int, code symbol.Code) float64 { return code.Y }

func (d *document) page(index int, finer bool) (*symbol.Gray, error) {
	if finer {
		return d.renderPage(index, finerDPI)
	}
	return d.renderPage(index, firstDPI)
}

// renderPage renders a page in shades of grey.
func (d *document) renderPage(index int, dpi float64) (gray *symbol.Gray, err error) {
	err = d.draw(index, enums.FPDF_BITMAP_FORMAT_GRAY, enums.FPDF_RENDER_FLAG_GRAYSCALE,
		func(_, _ float64) float64 { return dpi / pointsPerInch },
		func(r raster) {
			gray = symbol.NewGray(r.w, r.h)
			for y := range r.h {
				copy(gray.Pix[y*r.w:(y+1)*r.w], r.pixels[y*r.stride:])
			}
		})
	return gray, err
}

// draw renders a page, counted from 0, on white paper. scale returns the pixels of a point for a page of w by h points. The pixels belong
// to the engine: use must copy them.
func (d *document) draw(index int, format enums.FPDF_BITMAP_FORMAT, flags enums.FPDF_RENDER_FLAG, scale func(w, h float64) float64, use func(r raster)) error {
	return d.limited(func() error {
		loaded, err := d.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.ref, Index: index})
		if err != nil {
			return errorf(DamagedFile, "load page %d: %w", index+1, err)
		}
		page := requests.Page{ByReference: &loaded.Page}
		w, h, err := d.pageSize(page)
		if err != nil {
			return err
		}
		if err := d.rasterize(page, w, h, scale(w, h), format, flags, use); err != nil {
			return err
		}
		_, err = d.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
		return err
	})
}

// pageSize returns width and height of a page in points. It rejects pages that no printer makes.
func (d *document) pageSize(page requests.Page) (w, h float64, err error) {
	width, err := d.FPDF_GetPageWidthF(&requests.FPDF_GetPageWidthF{Page: page})
	if err != nil {
		return 0, 0, errorf(DamagedFile, "page width: %w", err)
	}
	height, err := d.FPDF_GetPageHeightF(&requests.FPDF_GetPageHeightF{Page: page})
	if err != nil {
		return 0, 0, errorf(DamagedFile, "page height: %w", err)
	}
	w, h = float64(width.PageWidth), float64(height.PageHeight)
	if !(w > 0 && h > 0) || math.IsInf(w, 0) || math.IsInf(h, 0) {
		return 0, 0, errorf(DamagedFile, "page of %g x %g points", w, h)
	}
	if max(w, h) > maxPagePoints {
		return 0, 0, errorf(TooLarge, "page of %g x %g points", w, h)
	}
	return w, h, nil
}

// raster are the pixels of a rendered page.
type raster struct {
	w, h, stride int
	pixels       []byte
}

// rasterize renders a page of w by h points, scaled and no larger than maxPagePixels.
func (d *document) rasterize(page requests.Page, w, h, scale float64, format enums.FPDF_BITMAP_FORMAT, flags enums.FPDF_RENDER_FLAG, use func(r raster)) error {
	scale = min(scale, math.Sqrt(float64(min(maxPagePixels, d.limits.Pixels))/(w*h)))
	r := raster{w: max(1, int(w*scale)), h: max(1, int(h*scale))}
	created, err := d.FPDFBitmap_CreateEx(&requests.FPDFBitmap_CreateEx{Width: r.w, Height: r.h, Format: format, Pointer: uint64(0)})
	if err != nil {
		return errorf(TooComplex, "bitmap of %d x %d: %w", r.w, r.h, err)
	}
	if _, err := d.FPDFBitmap_FillRect(&requests.FPDFBitmap_FillRect{Bitmap: created.Bitmap, Width: r.w, Height: r.h, Color: 0xffffffff}); err != nil {
		return errorf(DamagedFile, "fill background: %w", err)
	}
	if _, err := d.FPDF_RenderPageBitmap(&requests.FPDF_RenderPageBitmap{Bitmap: created.Bitmap, Page: page, SizeX: r.w, SizeY: r.h,
		Flags: flags | enums.FPDF_RENDER_FLAG_ANNOT | enums.FPDF_RENDER_FLAG_RENDER_LIMITEDIMAGECACHE}); err != nil {
		return errorf(DamagedFile, "render: %w", err)
	}
	stride, err := d.FPDFBitmap_GetStride(&requests.FPDFBitmap_GetStride{Bitmap: created.Bitmap})
	if err != nil {
		return errorf(DamagedFile, "stride: %w", err)
	}
	buffer, err := d.FPDFBitmap_GetBuffer(&requests.FPDFBitmap_GetBuffer{Bitmap: created.Bitmap})
	bytes := r.w // of a row
	if format != enums.FPDF_BITMAP_FORMAT_GRAY {
		bytes *= 4
	}
	if err != nil || stride.Stride < bytes || len(buffer.Buffer) < stride.Stride*r.h {
		return errorf(DamagedFile, "no pixels: %w", err)
	}
	r.stride, r.pixels = stride.Stride, buffer.Buffer
	use(r)
	_, err = d.FPDFBitmap_Destroy(&requests.FPDFBitmap_Destroy{Bitmap: created.Bitmap})
	return err
}

const engineMemory = 192 << 20 // memory that one PDF may use in the engine

// engine is PDFium, compiled to WebAssembly. It runs in a worker and renders one document at a time.
type engine struct {
	pool   pdfium.Pool
	memory *linearMemory // of the newest instance
}

// newEngine loads the compiled engine from cacheDir. It compiles the engine, which takes some seconds, when cacheDir is
// empty, unusable or does not hold it yet.
func newEngine(cacheDir string) (*engine, error) {
	e := &engine{}
	config := wazero.NewRuntimeConfig() // linearMemory limits the memory, and records a request beyond the limit
	if cacheDir != "" && os.MkdirAll(cacheDir, 0o700) == nil {
		if cache, err := wazero.NewCompilationCacheWithDir(cacheDir); err == nil {
			config = config.WithCompilationCache(cache)
		}
	}
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory {
			e.memory = newLinearMemory()
			return e.memory
		}))
	var err error
	e.pool, err = webassembly.Init(webassembly.Config{
		Context: ctx, MaxTotal: 1, RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), // the engine cannot access files of the host
		Stdout:   io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("compile the PDF engine: %w", err)
	}
	// The first instance makes the engine initialise itself.
	d, err := e.newDocument(Limits{})
	if err != nil {
		return nil, err
	}
	d.close()
	return e, nil
}

// newDocument returns a new instance for a document. Only one may exist at a time.
func (e *engine) newDocument(limits Limits) (*document, error) {
	api, err := e.pool.GetInstanceWithContext(context.Background())
	if err != nil {
		return nil, fmt.Errorf("start the PDF engine: %w", err)
	}
	return &document{Pdfium: api, memory: e.memory, limits: limits}, nil
}

// limited runs one step of the engine. A step that exceeds the limit of processor time ends the worker.
func (d *document) limited(step func() error) (err error) {
	if d.broken {
		return errorf(TooComplex, "a previous step of this document failed")
	}
	stop := sandbox.LimitCPU(d.limits.Page)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			d.broken = true
			err = errorf(DamagedFile, "the PDF engine failed: %v", p)
		}
		if d.memory.denied {
			d.broken = true
			err = errorf(TooComplex, "the document needs more than %d MB", engineMemory>>20)
		}
	}()
	return step()
}

// close closes the instance and releases its memory.
func (d *document) close() {
	defer func() {
		// The library panics when it closes handles of a document whose memory was released before.
		_ = recover()
	}()
	if d.broken {
		_ = d.Kill()
		return
	}
	_ = d.Close()
}

// linearMemory is the memory of a WebAssembly instance. It is outside the Go heap: it does not move when it grows, it does
// not delay the garbage collector, and it is released to the system at once.
type linearMemory struct {
	region []byte // the maximum size
	denied bool   // the instance requested more
}

func newLinearMemory() *linearMemory { return &linearMemory{region: reserve(engineMemory)} }

// Reallocate resizes the memory. It returns nil beyond the maximum.
func (g *linearMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(g.region)) {
		g.denied = true
		return nil
	}
	return g.region[:size]
}

// Free releases the memory.
func (g *linearMemory) Free() {
	release(g.region)
	g.region = nil
}
