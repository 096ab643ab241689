package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
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
	{name: "workbench", path: "/customers", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow("Nina Keller") + ` || document.querySelector('.row-link').click() || true`, `document.querySelector('.bench-record .stream')`}},
	{name: "customer-kyc", path: "/customers?kyc_status=in_review&type=individual", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow(""), `document.querySelector('.tabs a[href$="/kyc"]')?.click() ?? document.querySelector('.tabs')`, `document.querySelector('.timeline')`}},
	{name: "review", path: "/review", drawn: `document.querySelector('.start-review')`, look: desk,
		steps: []string{`(() => { const found = document.querySelector('.start-review'); found?.click(); return found; })()`, `document.querySelector('.review-grid .items')`}},
	{name: "tasks", path: "/tasks", drawn: `document.querySelector('.task .fine')`, look: desk},
	{name: "chats", path: "/chats", drawn: `document.querySelector('.chat-list a')`, look: desk,
		steps: []string{`(() => { const found = [...document.querySelectorAll('.chat-list a')].find((one) => one.innerText.includes('Onboarding')); found?.click(); return found; })()`, `document.querySelector('.message')`}},
	{name: "persona", path: "/personas?q=Keller", drawn: `document.querySelector('.row-link')`, look: desk,
		steps: []string{follow("Nina Keller"), `document.querySelector('.graph')`}},
	{name: "invoice", path: "/invoices", drawn: `document.querySelector('.drop')`, look: desk, file: "baeckerei-zuercher.pdf",
		steps: []string{`document.querySelector('.paper')`}},
}

var asAdministrator = []shot{
	{name: "audit", path: "/admin/audit", drawn: `document.querySelector('.notice.good') && document.querySelector('table.data') && !document.querySelector('main').innerText.includes('…')`, look: desk},
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
