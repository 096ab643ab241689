package invoices_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

const (
	billsPath = "/v1/invoices/bills"
	picture   = "formats-b57-06.png"
)

// keepBill reads a bill and returns the id under which it is kept.
func keepBill(t *testing.T, c *servertest.Client, name string) string {
	t.Helper()
	var answer struct {
		BillID string `json:"bill_id"`
	}
	c.Do("POST", path, body(t, name, map[string]any{"keep": true})).Expect(t, http.StatusOK).Into(t, &answer)
	if answer.BillID == "" {
		t.Fatal("the answer has no bill_id")
	}
	return answer.BillID
}

func bills(t *testing.T, c *servertest.Client) (total int, ids []string) {
	t.Helper()
	var page struct {
		Total int
		Data  []struct{ ID string }
	}
	c.Do("GET", billsPath, nil).Expect(t, http.StatusOK).Into(t, &page)
	for _, one := range page.Data {
		ids = append(ids, one.ID)
	}
	return page.Total, ids
}

func TestBills_AreKeptOnRequestForTheReaderAlone(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	anna.Do("POST", path, body(t, picture, nil)).Expect(t, http.StatusOK)
	if n, _ := bills(t, anna); n != 0 {
		t.Errorf("%d bills are kept without a request", n)
	}
	id := keepBill(t, anna, picture)
	if again := keepBill(t, anna, picture); again != id {
		t.Errorf("the same bill is kept as %s and as %s", id, again)
	}
	foreign := keepBill(t, beat, picture)
	var iban string
	plain := anna.Do("POST", path, body(t, picture, nil)).JSON(t)["qr_info"].(map[string]any)
	iban = plain["iban"].(string)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "own", As: anna, Method: "GET", Path: billsPath, Status: 200, Contains: []string{id, iban, `"total":1`}, Excludes: []string{foreign}},
		{Name: "administrators do not see them", As: s.Admin(), Method: "GET", Path: billsPath, Status: 200, Contains: []string{`"total":0`}},
		{Name: "deleting a foreign one", As: beat, Method: "DELETE", Path: billsPath + "/" + id, Status: 404, Contains: []string{"invoices.bill_not_found"}},
		{Name: "deleting an unknown one", As: anna, Method: "DELETE", Path: billsPath + "/" + store.NewID(), Status: 404},
		{Name: "deleting", As: anna, Method: "DELETE", Path: billsPath + "/" + id, Status: 200, Contains: []string{"message"}},
		{Name: "deleting again", As: anna, Method: "DELETE", Path: billsPath + "/" + id, Status: 404},
		{Name: "without a token", Method: "GET", Path: billsPath, Status: 401},
		{Name: "an invalid option", As: anna, Method: "POST", Path: path, Body: body(t, picture, map[string]any{"keep": "yes"}), Status: 400, Contains: []string{"invalid_options"}},
	})
	if n, _ := bills(t, beat); n != 1 {
		t.Errorf("Beat has %d bills, want 1", n)
	}
	var stored string
	if err := s.DB.QueryRow(t.Context(), `SELECT content_sealed FROM bills`).Scan(&stored); err != nil || strings.Contains(stored, iban) {
		t.Errorf("the stored bill is %q (%v), want it sealed", stored, err)
	}
}

func TestBills_WarningsFollowTheLanguage(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	keepBill(t, anna, picture)
	message := func(lang string) string {
		var page struct {
			Data []struct {
				Info struct {
					Warnings []struct{ Message string }
				} `json:"qr_info"`
			}
		}
		anna.With("Accept-Language", lang).Do("GET", billsPath, nil).Expect(t, http.StatusOK).Into(t, &page)
		return fmt.Sprint(page.Data[0].Info.Warnings)
	}
	if en, de := message("en"), message("de"); strings.Contains(en, "{}") || (len(en) > 2 && en == de) {
		t.Errorf("in English %s, in German %s", en, de)
	}
}

func TestPurge_DeletesBillsThatWereNotReadForLong(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	old := keepBill(t, anna, picture)
	s.Clock.Set(s.Clock.Now().AddDate(0, 0, 399))
	purge(t, s)
	if n, _ := bills(t, s.SignIn(anna.UserID, "a long enough password 42")); n != 1 {
		t.Errorf("after 399 days there are %d bills, want 1", n)
	}
	s.Clock.Set(s.Clock.Now().Add(48 * time.Hour))
	purge(t, s)
	if n, _ := bills(t, s.SignIn(anna.UserID, "a long enough password 42")); n != 0 {
		t.Errorf("after 401 days the bill %s is still there", old)
	}
}

func purge(t *testing.T, s *servertest.Server) {
	t.Helper()
	if err := s.Invoices.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
}
