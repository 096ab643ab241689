package files_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// stall opens uploads of the customer that do not end, and returns how many were rejected, once as many as expected were.
func (b bank) stall(t *testing.T, uploads, rejected int) {
	t.Helper()
	var got atomic.Int64
	begin := pdfOf(1, 300, 200, 90<<10)[:20<<10] // the server begins to answer when it has some of a body
	for range uploads {
		c := b.dial(t, "Content-Length: 100000")
		if _, err := c.Write(begin); err != nil {
			t.Fatal(err)
		}
		go func() {
			one := make([]byte, len("HTTP/1.1 429"))
			if n, _ := c.Read(one); n == len(one) && string(one) == "HTTP/1.1 429" { // the others get nothing
				got.Add(1)
			}
		}()
	}
	testenv.Wait(t, fmt.Sprintf("%d of %d uploads to be rejected", rejected, uploads), func() bool { return got.Load() == int64(rejected) })
}

// Customers who keep uploads open leave places for other customers, for staff, and for all downloads.
func TestUpload_SlowOnesLeavePlacesForOthers(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 10)
	id := idOf(t, raw(b.owner, b.evidence(), "a.pdf", pdf))
	greedy := []bank{b}
	for range 2 {
		greedy = append(greedy, b.anotherCustomer(t))
	}
	greedy[0].stall(t, 64, 64-48) // half of 96, which are not for staff
	greedy[1].stall(t, 64, 64-24) // half of the rest
	modest := greedy[2]
	raw(modest.owner, modest.evidence(), "b.pdf", pdf).Expect(t, http.StatusCreated)
	for _, c := range []*servertest.Client{b.owner, b.Admin()} {
		c.Do("GET", "/v1/files/"+id+"/content", nil).Expect(t, http.StatusOK)
	}
	greedy[2].stall(t, 64, 64-12)
	raw(b.Admin(), b.evidence(), "c.pdf", pdf).Expect(t, http.StatusCreated)
}

// anotherCustomer returns the bank with another customer, who has a document.
func (b bank) anotherCustomer(t *testing.T) bank {
	t.Helper()
	b.owner = b.User(access.Customer)
	b.customer = b.owner.Create("/v1/customers", map[string]any{"type": "individual", "first_name": "Eva", "last_name": "Muster",
		"email": b.owner.UserID + "@example.ch"})
	b.document = b.addDocument(t, "X7654321")
	return b
}
