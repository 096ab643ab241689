package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const waitLimit = 20 * time.Second // for one change of the page

// openBrowser starts chromium; closing ends it.
func openBrowser(ctx context.Context) (browser context.Context, closing func(), err error) {
	path, err := exec.LookPath("chromium")
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
