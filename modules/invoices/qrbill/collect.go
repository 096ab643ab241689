package qrbill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// collection is what a worker has found in one file. A worker that was taken over by a file can send any text; so the
// texts are parsed here, and nothing else is believed.
type collection struct {
	bills   []found
	refused error // why a Swiss code gave no bill
	foreign bool  // there are other codes
}

// found is a bill and where it stands.
type found struct {
	page     int
	down     float64
	bill     *Bill
	findings []Finding
}

// maxBills is more than any document has. Without a bound a worker that was taken over could fill our memory.
const maxBills = 2000

var errTooManyBills = errors.New("too many bills")

// add takes in a part of the worker's answer.
func (c *collection) add(part []byte) error {
	var seen sighting
	if err := json.Unmarshal(part, &seen); err != nil {
		return fmt.Errorf("part of the answer: %w", err)
	}
	if seen.Foreign {
		c.foreign = true
		return nil
	}
	if len(c.bills) == maxBills {
		return errTooManyBills
	}
	bill, findings, err := Parse(string(seen.Text))
	if err != nil {
		c.refused = err
		return nil //nolint:nilerr // the search goes on: another code may be a bill
	}
	if seen.Legacy {
		findings = append(findings, Finding{"coding", NoteEncoding, ""})
	}
	c.bills = append(c.bills, found{seen.Page, seen.Down, bill, findings})
	return nil
}

// result is the first bill, or the most telling reason for none. unfinished says why the search ended early, and failed
// why some page could not be shown; both may be nil.
func (c *collection) result(unfinished, failed error) (*Result, error) {
	if len(c.bills) > 0 {
		return c.first(), nil
	}
	switch {
	case c.refused != nil:
		return nil, c.refused
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

// first is the first bill, with the others that lead to another payment.
func (c *collection) first() *Result {
	slices.SortStableFunc(c.bills, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.down, b.down))
	})
	first := c.bills[0]
	result := &Result{Bill: first.bill, Page: first.page + 1, Findings: first.findings}
	seen := []*Bill{first.bill}
	for _, other := range c.bills[1:] {
		if slices.ContainsFunc(seen, other.bill.SamePayment) {
			continue // the copy page
		}
		seen = append(seen, other.bill)
		result.Others = append(result.Others, Other{other.page + 1, other.bill})
	}
	return result
}
