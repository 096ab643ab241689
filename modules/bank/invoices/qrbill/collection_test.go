package qrbill

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// part encodes a code as a worker does.
func part(t testing.TB, s foundCode) []byte {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

var anyBill = []byte("SPC\n0200\n1\nCH5800791123000889012\nS\nMuster AG\n\n\n8000\nBern\nCH\n" + strings.Repeat("\n", 7) + "1.00\nCHF\n" +
	strings.Repeat("\n", 7) + "NON\n\n\nEPD")

func TestCollection_LimitsTheNumberOfBills(t *testing.T) {
	var c collection
	for range maxBills {
		if err := c.add(part(t, foundCode{Text: anyBill})); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.add(part(t, foundCode{Text: anyBill})); !errors.Is(err, errTooManyBills) {
		t.Errorf("got %v", err)
	}
}

// FuzzCollection adds arbitrary bytes, as a compromised worker might send.
func FuzzCollection(f *testing.F) {
	f.Add(part(f, foundCode{Page: -1, Position: -1, Text: anyBill}))
	f.Add(part(f, foundCode{Foreign: true}))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		var c collection
		if c.add(sent) != nil {
			return
		}
		if result, err := c.result(nil, nil); (result == nil) == (err == nil) {
			t.Fatalf("got %v and %v", result, err)
		}
	})
}
