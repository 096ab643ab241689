package qrbill

import (
	"context"
	"sort"
	"time"

	"kontor/modules/invoices/qrbill/symbol"
)

// thoroughPages is the number of pages of a document that get the expensive passes: those with the most evidence of a code.
const thoroughPages = 3

// search searches the pages of one file, in a worker.
type search struct {
	source source
	report func(foundCode) error // called for each code at once, because the next page may crash the worker
	bills  int
	failed error // why a page could not be rendered
	pages  []candidate
}

// foundCode is a code on a page.
type foundCode struct {
	Page     int     `json:"page,omitempty"` // counted from 0
	Position float64 `json:"position,omitempty"`
	Text     []byte  `json:"text,omitempty"` // empty for a foreign code
	Legacy   bool    `json:"legacy,omitempty"`
	Foreign  bool    `json:"foreign,omitempty"` // not a Swiss code
}

// candidate is a page on which no bill was found yet.
type candidate struct {
	page     int
	evidence int
}

// run searches the pages from first to last-1 until the context ends. It returns only errors of report.
func (s *search) run(ctx context.Context, first, last int) error {
	if err := s.quick(ctx, first, last); err != nil || s.bills > 0 {
		return err
	}
	return s.thorough(ctx)
}

// quick runs the cheap passes on every page.
func (s *search) quick(ctx context.Context, first, last int) error {
	for page := first; page < last && ctx.Err() == nil; page++ {
		gray, err := s.source.page(page, false)
		if err != nil {
			s.failed = err
			continue
		}
		scan := symbol.NewScan(gray)
		scan.Stop = isSwissCode
		if s.bills == 0 {
			scan.Quick(ctx)
		} else {
			scan.Glance(ctx)
		}
		swiss, err := s.reportCodes(page, scan)
		if err != nil {
			return err
		}
		if swiss == 0 {
			s.pages = append(s.pages, candidate{page, scan.Evidence})
		}
	}
	return nil
}

// thorough runs the expensive passes on the pages with the most evidence.
func (s *search) thorough(ctx context.Context) error {
	sort.SliceStable(s.pages, func(i, j int) bool { return s.pages[i].evidence > s.pages[j].evidence })
	chosen := s.pages[:min(len(s.pages), thoroughPages)]
	sort.Slice(chosen, func(i, j int) bool { return chosen[i].page < chosen[j].page })
	for _, c := range chosen {
		for _, finer := range []bool{true, false} {
			gray, err := s.source.page(c.page, finer)
			if err != nil || gray == nil {
				continue
			}
			scan := symbol.NewScan(gray)
			scan.Stop = isSwissCode
			if finer {
				scan.Quick(ctx)
			} else {
				scan.Thorough(ctx)
			}
			if swiss, err := s.reportCodes(c.page, scan); err != nil || swiss > 0 {
				return err
			}
		}
	}
	return nil
}

func isSwissCode(c symbol.Code) bool { return IsSwiss(c.Text) }

// reportCodes reports the codes of a page and returns how many of them are Swiss.
func (s *search) reportCodes(page int, scan *symbol.Scan) (swiss int, err error) {
	for _, code := range scan.Codes {
		found := foundCode{Foreign: true}
		if IsSwiss(code.Text) {
			swiss++
			found = foundCode{Page: page, Position: s.source.position(page, code), Text: []byte(code.Text), Legacy: code.Legacy}
			if _, _, err := Parse(code.Text, time.Time{}); err == nil {
				s.bills++
			}
		}
		if err := s.report(found); err != nil {
			return swiss, err
		}
	}
	return swiss, nil
}
