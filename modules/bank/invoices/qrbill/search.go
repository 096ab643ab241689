package qrbill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"kontor/modules/bank/invoices/qrbill/symbol"
	"kontor/modules/kit/sandbox"
)

// thoroughTime is the processor time of the expensive passes over one file. The hardest bills of the corpus need a second. Noise and
// stamps look like finder patterns: their combinations would take all the time that a file may take.
const thoroughTime = 4 * time.Second

// budget is a context that also ends when the worker has used a processor time, whatever else the machine does.
type budget struct {
	context.Context
	until time.Duration
}

var errBudget = errors.New("the processor time for the search is used up")

// withBudget returns a context for a processor time from now on.
func withBudget(ctx context.Context, d time.Duration) context.Context {
	return budget{ctx, sandbox.ProcessorTime() + d}
}

// Err returns an error when the context has ended or the time is used up.
func (b budget) Err() error {
	if err := b.Context.Err(); err != nil {
		return err
	}
	if sandbox.ProcessorTime() > b.until {
		return errBudget
	}
	return nil
}

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
	ctx = withBudget(ctx, thoroughTime)
	for _, c := range chosen {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the budget has ended: what was found counts
		}
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

// collection collects the codes that a worker reads in one file. A malicious file can compromise its worker, which may then
// send arbitrary data. The texts are therefore parsed here, in the parent process.
type collection struct {
	at      time.Time // of the reading, for rules that depend on it
	bills   []foundBill
	invalid error // why a Swiss code is not a valid bill
	foreign bool  // there are other codes
}

// foundBill is a bill with its position.
type foundBill struct {
	page     int
	position float64
	bill     *Bill
	findings []Finding
}

// maxBills exceeds the number of bills in any real document. It keeps a compromised worker from filling the memory.
const maxBills = 2000

var errTooManyBills = errors.New("too many bills")

// add adds a part of the worker's answer.
func (c *collection) add(part []byte) error {
	var code foundCode
	if err := json.Unmarshal(part, &code); err != nil {
		return fmt.Errorf("part of the answer: %w", err)
	}
	if code.Foreign {
		c.foreign = true
		return nil
	}
	if len(c.bills) == maxBills {
		return errTooManyBills
	}
	bill, findings, err := Parse(string(code.Text), c.at)
	if err != nil {
		c.invalid = err
		return nil //nolint:nilerr // the search continues: another code may be a bill
	}
	if code.Legacy {
		findings = append(findings, Finding{"coding", NoteEncoding, ""})
	}
	c.bills = append(c.bills, foundBill{code.Page, code.Position, bill, findings})
	return nil
}

// result returns the first bill, or the most specific error. unfinished is the reason why the search ended early, and
// failed the reason why some page could not be rendered. Both may be nil.
func (c *collection) result(unfinished, failed error) (*Result, error) {
	if len(c.bills) > 0 {
		return c.first(), nil
	}
	switch {
	case c.invalid != nil:
		return nil, c.invalid
	case unfinished != nil:
		return nil, unfinished
	case c.foreign:
		return nil, &Error{Reason: NotSwissQRBill}
	case failed != nil:
		return nil, failed
	default:
		return nil, &Error{Reason: NoQRCode}
	}
}

// first returns the first bill, with the other bills that result in another payment.
func (c *collection) first() *Result {
	sort.SliceStable(c.bills, func(i, j int) bool {
		a, b := c.bills[i], c.bills[j]
		return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.position, b.position)) < 0
	})
	first := c.bills[0]
	result := &Result{Bill: first.bill, Page: first.page + 1, Findings: first.findings}
	seen := []*Bill{first.bill}
	for _, other := range c.bills[1:] {
		if slices.ContainsFunc(seen, other.bill.SamePayment) {
			continue // a copy of the same bill
		}
		seen = append(seen, other.bill)
		result.Others = append(result.Others, Other{other.page + 1, other.bill})
	}
	return result
}
