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

// search goes through the pages of one file.
type search struct {
	source   source
	deadline context.Context
	bills    []found
	refused  error // why a Swiss code gave no bill
	failed   error // why a page could not be shown
	foreign  bool  // there are other codes
	pages    []candidate
}

// found is a bill and where it stands.
type found struct {
	page     int
	down     float64
	bill     *Bill
	findings []Finding
}

// candidate is a page without a bill so far.
type candidate struct {
	page     int
	evidence int
}

// quick makes the cheap passes on every page.
func (s *search) quick(first, last int) {
	for page := first; page < last && s.deadline.Err() == nil; page++ {
		gray, err := s.source.page(s.deadline, page, false)
		if err != nil {
			s.failed = err
			continue
		}
		scan := symbol.NewScan(gray)
		scan.Stop = isSwissCode
		if len(s.bills) == 0 {
			scan.Quick(s.deadline)
		} else {
			scan.Glance(s.deadline)
		}
		if s.take(page, scan) == 0 {
			s.pages = append(s.pages, candidate{page, scan.Evidence})
		}
	}
}

// thorough makes the dear passes on the pages that promise most.
func (s *search) thorough() {
	slices.SortStableFunc(s.pages, func(a, b candidate) int { return cmp.Compare(b.evidence, a.evidence) })
	chosen := s.pages[:min(len(s.pages), thoroughPages)]
	slices.SortFunc(chosen, func(a, b candidate) int { return cmp.Compare(a.page, b.page) })
	for _, c := range chosen {
		for _, finer := range []bool{true, false} {
			gray, err := s.source.page(s.deadline, c.page, finer)
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
			if s.take(c.page, scan) > 0 {
				return
			}
		}
	}
}

func isSwissCode(c symbol.Code) bool { return IsSwiss(c.Text) }

// take keeps the bills among the codes of a page and returns how many there were.
func (s *search) take(page int, scan *symbol.Scan) int {
	count := 0
	for _, code := range scan.Codes {
		if !IsSwiss(code.Text) {
			s.foreign = true
			continue
		}
		count++
		bill, findings, err := Parse(code.Text)
		if err != nil {
			s.refused = err
			continue
		}
		if code.Legacy {
			findings = append(findings, Finding{"coding", NoteEncoding, ""})
		}
		s.bills = append(s.bills, found{page, s.source.down(page, code), bill, findings})
	}
	return count
}

// result answers with the first bill, or with the most telling reason for none.
func (s *search) result() (*Result, error) {
	if len(s.bills) > 0 {
		slices.SortStableFunc(s.bills, func(a, b found) int {
			return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.down, b.down))
		})
		first := s.bills[0]
		result := &Result{Bill: first.bill, Page: first.page + 1, Findings: first.findings}
		seen := []*Bill{first.bill}
		for _, other := range s.bills[1:] {
			if slices.ContainsFunc(seen, other.bill.SamePayment) {
				continue // the copy page
			}
			seen = append(seen, other.bill)
			result.Others = append(result.Others, Other{other.page + 1, other.bill})
		}
		return result, nil
	}
	switch {
	case s.refused != nil:
		return nil, s.refused
	case s.deadline.Err() != nil:
		return nil, contextError(s.deadline)
	case s.foreign:
		return nil, &Error{Reason: NotSwissQRBill}
	case s.failed != nil:
		return nil, s.failed
	default:
		return nil, &Error{Reason: NoQRCode}
	}
}
