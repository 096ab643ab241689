package qrbill

import (
	"cmp"
	"context"
	"slices"

	"kontor/modules/invoices/qrbill/symbol"
)

// thoroughPages is how many pages of a document get the dear passes: those
// that look most like carrying a code.
const thoroughPages = 3

// search goes through the pages of one file, in a worker.
type search struct {
	source   source
	deadline context.Context
	report   func(sighting) error // what is found is reported at once: the next page may end the worker
	bills    int
	failed   error // why a page could not be shown
	pages    []candidate
}

// sighting is a code on a page.
type sighting struct {
	Page    int     `json:"page,omitempty"` // counted from 0
	Down    float64 `json:"down,omitempty"` // source.down
	Text    []byte  `json:"text,omitempty"` // only of a Swiss code
	Legacy  bool    `json:"legacy,omitempty"`
	Foreign bool    `json:"foreign,omitempty"` // a code of another kind
}

// candidate is a page without a bill so far.
type candidate struct {
	page     int
	evidence int
}

// run searches the pages from first to before last. The error is one of report.
func (s *search) run(first, last int) error {
	if err := s.quick(first, last); err != nil || s.bills > 0 {
		return err
	}
	return s.thorough()
}

// quick makes the cheap passes on every page.
func (s *search) quick(first, last int) error {
	for page := first; page < last && s.deadline.Err() == nil; page++ {
		gray, err := s.source.page(page, false)
		if err != nil {
			s.failed = err
			continue
		}
		scan := symbol.NewScan(gray)
		scan.Stop = isSwissCode
		if s.bills == 0 {
			scan.Quick(s.deadline)
		} else {
			scan.Glance(s.deadline)
		}
		swiss, err := s.take(page, scan)
		if err != nil {
			return err
		}
		if swiss == 0 {
			s.pages = append(s.pages, candidate{page, scan.Evidence})
		}
	}
	return nil
}

// thorough makes the dear passes on the pages that promise most.
func (s *search) thorough() error {
	slices.SortStableFunc(s.pages, func(a, b candidate) int { return cmp.Compare(b.evidence, a.evidence) })
	chosen := s.pages[:min(len(s.pages), thoroughPages)]
	slices.SortFunc(chosen, func(a, b candidate) int { return cmp.Compare(a.page, b.page) })
	for _, c := range chosen {
		for _, finer := range []bool{true, false} {
			gray, err := s.source.page(c.page, finer)
			if err != nil || gray == nil {
				continue
			}
			scan := symbol.NewScan(gray)
			scan.Stop = isSwissCode
			if finer {
				scan.Quick(s.deadline)
			} else {
				scan.Thorough(s.deadline)
			}
			if swiss, err := s.take(c.page, scan); err != nil || swiss > 0 {
				return err
			}
		}
	}
	return nil
}

func isSwissCode(c symbol.Code) bool { return IsSwiss(c.Text) }

// take reports the codes of a page and returns how many of them are Swiss.
func (s *search) take(page int, scan *symbol.Scan) (swiss int, err error) {
	for _, code := range scan.Codes {
		seen := sighting{Foreign: true}
		if IsSwiss(code.Text) {
			swiss++
			seen = sighting{Page: page, Down: s.source.down(page, code), Text: []byte(code.Text), Legacy: code.Legacy}
			if _, _, err := Parse(code.Text); err == nil {
				s.bills++
			}
		}
		if err := s.report(seen); err != nil {
			return swiss, err
		}
	}
	return swiss, nil
}
