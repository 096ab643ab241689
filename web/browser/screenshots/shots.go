package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	wide, high = 1280, 800
	maxBytes   = 400_000
)

// look is the size and the theme of a window.
type look struct {
	width, height int64
	dark          bool
}

// shot is one picture. drawn is a JavaScript condition that holds once the screen is complete. Each step is a condition
// too, whose evaluation may click.
type shot struct {
	name, path, drawn string
	look              look
	steps             []string
	file              string // a sample bill to choose
}

// follow returns a step that clicks the link of a table whose text contains name.
func follow(name string) string {
	return fmt.Sprintf(`(() => { const found = [...document.querySelectorAll('.row-link')].find((one) => one.innerText.includes(%q)); found?.click(); return found; })()`, name)
}

var (
	desk  = look{width: wide, height: high}
	night = look{width: wide, height: high, dark: true}
	phone = look{width: 360, height: 740}
)

// The overview comes first, because opening a chat marks its messages as read.
var asAdvisor = []shot{
	{name: "overview", path: "/", drawn: `document.querySelector('.plot b')`, look: desk},
	{name: "overview-dark", path: "/", drawn: `document.querySelector('.plot b')`, look: night},
	{name: "narrow", path: "/", drawn: `document.querySelector('.plot b')`, look: phone},
	{name: "customers", path: "/customers", drawn: `document.querySelector('.row-link')`, look: desk},
	{name: "workbench", path: "/customers?kyc_status=in_review&type=individual", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow(""), `document.querySelector('.bench-record .stream')`}},
	{name: "customer-kyc", path: "/customers?kyc_status=in_review&type=individual", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow(""), `document.querySelector('.tabs a[href$="/kyc"]')?.click() ?? document.querySelector('.tabs')`, `document.querySelector('.timeline')`}},
	{name: "review", path: "/review", drawn: `document.querySelector('.start-review')`, look: desk,
		steps: []string{`(() => { const found = document.querySelector('.start-review'); found?.click(); return found; })()`, `document.querySelector('.review-grid .items')`}},
	{name: "tasks", path: "/tasks", drawn: `document.querySelector('.task .fine')`, look: desk},
	{name: "chats", path: "/chats", drawn: `document.querySelector('.chats .row-link')`, look: desk,
		steps: []string{`(() => { const found = [...document.querySelectorAll('.chats .row-link')].find((one) => one.innerText.includes('Onboarding')); found?.click(); return found; })()`, `document.querySelector('.message')`}},
	{name: "persona", path: "/personas?q=Keller", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow("Nina Keller"), `document.querySelector('.graph')`}},
	{name: "invoice", path: "/invoices", drawn: `document.querySelector('.drop')`, look: desk, file: "baeckerei-zuercher.pdf",
		steps: []string{`document.querySelector('.paper')`}},
}

var asAdministrator = []shot{
	{name: "audit", path: "/admin/audit", drawn: `document.querySelector('.notice.good') && document.querySelector('table.data') && document.querySelector('table.data tbody bdi')`, look: desk},
	{name: "permissions", path: "/admin/roles", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow("Advisor"), `document.querySelector('table input[type=checkbox]')`}},
	{name: "health", path: "/admin/health", drawn: `document.querySelector('.tile')`, look: desk},
	{name: "why", path: "/admin/users", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow("Lena Brunner"), `document.querySelector('select[name=permission]')`,
			`(() => { const form = document.querySelector('select[name=permission]').form; form.requestSubmit(); return true; })()`, `document.querySelector('form + [aria-live] .badge')`}},
	{name: "explorer", path: "/docs", drawn: `document.querySelector('.opblock-tag[data-tag=Customers]')`, look: desk,
		steps: []string{`(document.querySelector('.opblock-tag[data-tag=Customers]').click(), true)`, `document.querySelector('.opblock')`,
			`(document.querySelector('.opblock-tag[data-tag=Customers]').scrollIntoView(), scrollBy(0, -90), true)`}},
}

var asCustomer = []shot{
	{name: "home", path: "/", drawn: `document.querySelector('main h1') && document.querySelector('main .card')`, look: desk},
	{name: "home-narrow", path: "/", drawn: `document.querySelector('main h1') && document.querySelector('main .card')`, look: phone},
}

// takeAll takes every picture.
func takeAll(ctx context.Context, d *demo, out string) error {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	browser, closing, err := openBrowser(ctx)
	if err != nil {
		return err
	}
	defer closing()
	for _, who := range []struct {
		login string
		shots []shot
	}{{"advisor@kontor.localhost", asAdvisor}, {"admin@kontor.localhost", asAdministrator}, {"customer@kontor.localhost", asCustomer}} {
		v, err := enter(browser, d, who.login)
		if err != nil {
			return err
		}
		for _, s := range who.shots {
			if err := v.take(s, out); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// take writes one picture, and fails if it is larger than maxBytes.
func (v *visitor) take(s shot, out string) error {
	if err := v.look(s.look); err != nil {
		return err
	}
	if err := v.open(s.path, s.drawn); err != nil {
		return err
	}
	if s.file != "" {
		file := []string{filepath.Join(v.demo.bills, s.file)}
		if err := v.do(chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), file, chromedp.NodeReady)); err != nil {
			return err
		}
	}
	for _, step := range append(s.steps, `!document.querySelector('.skeleton')`, `(document.activeElement?.blur(), true)`) {
		if err := v.until(step); err != nil {
			return err
		}
	}
	picture, err := v.settled()
	if err != nil {
		return err
	}
	small, err := shrink(picture)
	if err != nil {
		return err
	}
	if len(small) > maxBytes {
		return errors.New("the picture is too large")
	}
	slog.Info("picture", "name", s.name, "bytes", len(small))
	return os.WriteFile(filepath.Join(out, s.name+".png"), small, 0o600)
}

const waitLimit = 20 * time.Second // for one change of the page

// openBrowser starts chromium; closing ends it.
func openBrowser(ctx context.Context) (browser context.Context, closing func(), err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		path, err = exec.LookPath("chromium-headless-shell")
	}
	if err != nil {
		return nil, nil, errors.New("screenshots need chromium: apt-get install chromium")
	}
	allocator, closeAllocator := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("hide-scrollbars", true))
	browser, closeBrowser := chromedp.NewContext(allocator)
	closing = func() {
		closeBrowser()
		closeAllocator()
	}
	if err := chromedp.Do(browser); err != nil {
		closing()
		return nil, nil, fmt.Errorf("start chromium: %w", err)
	}
	return browser, closing, nil
}

// visitor is a user with a separate window.
type visitor struct {
	ctx  context.Context
	demo *demo
}

// enter opens a window and signs a user in, in English.
func enter(browser context.Context, d *demo, login string) (*visitor, error) {
	ctx, _ := chromedp.NewContext(browser, chromedp.WithNewBrowserContext()) // it ends with the browser
	if err := chromedp.Do(ctx); err != nil {                                 // opens the window; a step with a deadline would close it
		return nil, err
	}
	v := &visitor{ctx: ctx, demo: d}
	steps := []func() error{
		func() error { return v.look(look{width: wide, height: high}) },
		func() error { return v.open("/signin", `document.querySelector('input[name=login]')`) },
		func() error {
			return v.until(`localStorage.setItem('kontor.language', 'en') ?? localStorage.setItem('kontor.language.chosen', 'en') ?? true`)
		},
		func() error { return v.open("/signin", `document.activeElement.name === 'login'`) },
		func() error {
			return v.do(chromedp.Focus(chromedp.CSS(`input[name=login]`), chromedp.NodeVisible), chromedp.SendKeys(chromedp.CSS(`input[name=login]`), login),
				chromedp.Focus(chromedp.CSS(`input[name=password]`), chromedp.NodeVisible), chromedp.SendKeys(chromedp.CSS(`input[name=password]`), d.passwords[login]+kb.Enter))
		},
		func() error { return v.until(`document.querySelector('.connection.live')`) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("sign in as %s: %w", login, err)
		}
	}
	return v, nil
}

// look sets the size of the window and the colour scheme.
func (v *visitor) look(l look) error {
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	return v.do(chromedp.EmulateViewport(l.width, l.height, chromedp.EmulateScale(2)), func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return chromedp.Void{}, err
	})
}

// open loads a path, and waits for a condition and for the end of loading.
func (v *visitor) open(path, drawn string) error {
	if err := v.do(chromedp.Navigate(v.demo.url(path))); err != nil {
		return err
	}
	return v.until(drawn + ` && !document.querySelector('.skeleton')`)
}

func (v *visitor) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// until waits for a JavaScript condition.
func (v *visitor) until(condition string) error {
	ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		if err == nil && ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still not true: %s: %w", condition, errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// settled waits until two pictures in a row are equal and returns the last one.
func (v *visitor) settled() ([]byte, error) {
	ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
	defer cancel()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	var last string
	for {
		picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return nil, err
		}
		if string(picture) == last {
			return picture, nil
		}
		last = string(picture)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the picture keeps changing: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

const maxColours = 256 // of a PNG with a palette

// shrink encodes a picture with a palette of its most frequent colours. Screens have few colours apart from the edges of
// letters, so the difference is not visible; the file has a third of the size.
func shrink(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	size := from.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	ordered := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(scatter(a), scatter(b)))
	})
	var palette color.Palette
	for _, c := range ordered[:min(len(ordered), maxColours)] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range ordered {
		index[c] = uint8(palette.Index(c)) //nolint:gosec // the palette has at most 256 colours
	}
	to := image.NewPaletted(size, palette)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			to.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var written bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&written, to); err != nil {
		return nil, err
	}
	return written.Bytes(), nil
}

// scatter orders equally frequent colours so that similar ones lie far apart. The palette then keeps some of each kind.
func scatter(c color.RGBA) uint32 {
	return (uint32(c.R)<<16 | uint32(c.G)<<8 | uint32(c.B)) * 2654435761 // the golden ratio of 2^32
}
