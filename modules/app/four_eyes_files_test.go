package app_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// A file that the customer adds while a decision waits does not void it; the second person sees that something is new. The customer
// cannot delete one: the case is in review, with or without a decision.
func TestFourEyes_FilesOfTheCustomer(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.KYC.FourEyes = "always" })
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	for name, c := range map[string]struct {
		status  string
		deletes bool
	}{
		"added before a verification":   {"verified", false},
		"added before a rejection":      {"rejected", false},
		"deleted before a verification": {"verified", true},
		"deleted before a rejection":    {"rejected", true},
	} {
		t.Run(name, func(t *testing.T) {
			kyc := "/v1/customers/" + owner.Create("/v1/customers", map[string]any{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch",
				"date_of_birth": "1971-03-04", "nationality": "CHE", "address": map[string]any{"city": "Zürich", "country": "CH"}}) + "/kyc"
			owner.Do("PUT", kyc, map[string]any{"documents": []map[string]any{
				{"type": "passport", "number": "X1", "expiry_date": "2099-01-01", "country": "CHE"}}}).Expect(t, 200)
			var k struct{ Documents []struct{ ID string } }
			owner.Do("GET", kyc, nil).Expect(t, 200).Into(t, &k)
			files := kyc + "/documents/" + k.Documents[0].ID + "/files"
			upload := func() string {
				return owner.With("Content-Type", "application/octet-stream", "Content-Disposition", `attachment; filename="a.pdf"`).
					Do("POST", files, smallPDF()).Expect(t, 201).JSON(t)["id"].(string)
			}
			before := upload()
			first.Do("PATCH", kyc+"/status", map[string]any{"kyc_status": "in_review"}).Expect(t, 200)
			got := first.Do("PATCH", kyc+"/status", map[string]any{"kyc_status": c.status, "reason": "checked"}).Expect(t, 202).JSON(t)
			decision := kyc + "/decisions/" + got["pending_decision"].(map[string]any)["id"].(string)
			if c.deletes {
				owner.Do("DELETE", "/v1/files/"+before, nil).ExpectError(t, http.StatusConflict, "files.evidence_locked")
			} else {
				upload()
			}
			pending, _ := second.Do("GET", kyc, nil).Expect(t, 200).JSON(t)["pending_decision"].(map[string]any)
			if pending == nil || (pending["changed_since"] == nil) != c.deletes {
				t.Errorf("the second person sees %v", pending)
			}
			second.Do("POST", decision+"/confirm", nil).Expect(t, http.StatusOK)
		})
	}
}
