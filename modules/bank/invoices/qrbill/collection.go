package qrbill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"
)

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
