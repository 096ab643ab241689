package customers_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store/migrations"
)

// everything returns what a user can read about a customer, by all addresses that may name it.
func everything(t *testing.T, c *servertest.Client, customer string) string {
	t.Helper()
	all := seen(t, c, customer)
	for _, path := range []string{customer + "/export", "/v1/users/" + c.UserID + "/export", "/v1/events?include=record",
		"/v1/notifications/deliveries", "/v1/kyc/cases", "/v1/audit", customer + "/changes", customer + "/report", "/v1/search?q=PEP", "/v1/search?q=filed",
		"/v1/webhooks", "/v1/rbac/explain?type=customers&id=" + strings.TrimPrefix(customer, "/v1/customers/")} {
		got := c.Do("GET", path, nil)
		all += got.Body + "\n"
	}
	return all + c.With("Accept", "text/csv").Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK).Body
}

// around returns the line of a text with the beginning of it.
func around(all, text string) string {
	before, after, _ := strings.Cut(all, text)
	line := before[strings.LastIndex(before, "\n")+1:]
	return line + text + after[:min(len(after), 40)]
}

// The reason of a decision that needed a second person may say what the customer must not learn. It stays with reviewers, whatever
// becomes of the decision. The customer gets the text that is meant for them.
func TestFourEyes_TheReasonIsForReviewers(t *testing.T) {
	s := servertest.Start(t, fourEyes("always"))
	const internal, told, refusal = "PEP hit, report filed, do not tell the client", "We cannot open an account.", "The report names another person"
	first, second := s.User(access.Advisor), s.User(access.Advisor)
	owner, helper := s.User(access.Customer), s.User(access.Customer) // helper may update single customers
	for _, reader := range []*servertest.Client{owner, helper} {      // by default, customers have no change feed
		s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": reader.UserID, "endpoint": "GET /v1/events"}).Expect(t, http.StatusCreated)
	}
	for name, c := range map[string]struct {
		body  servertest.Body
		close func(c *servertest.Client, decision string)
		told  bool
	}{
		"confirmed rejection": {decide("rejected").With("reason", internal, "customer_reason", told), func(c *servertest.Client, d string) {
			c.Do("POST", d+"/confirm", nil).Expect(t, http.StatusOK)
		}, true},
		"confirmed verification": {decide("verified").With("reason", internal), func(c *servertest.Client, d string) {
			c.Do("POST", d+"/confirm", nil).Expect(t, http.StatusOK)
		}, false},
		"refused": {decide("rejected").With("reason", internal, "customer_reason", told), func(c *servertest.Client, d string) {
			c.Do("POST", d+"/reject", map[string]any{"reason": refusal}).Expect(t, http.StatusOK)
		}, false},
		"pending": {decide("rejected").With("reason", internal, "customer_reason", told), func(*servertest.Client, string) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := inReview(t, owner, first)
			customer := strings.TrimSuffix(path, "/kyc")
			s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": helper.UserID, "rec_type": "customers",
				"rec_id": strings.TrimPrefix(customer, "/v1/customers/"), "permissions": []string{"read", "update"}}).Expect(t, http.StatusCreated)
			got := first.Do("PATCH", path+"/status", c.body).Expect(t, http.StatusAccepted).JSON(t)
			c.close(second, path+"/decisions/"+got["pending_decision"].(map[string]any)["id"].(string))
			for who, reader := range map[string]*servertest.Client{"the owner": owner, "a helper": helper} {
				all := everything(t, reader, customer)
				for _, secret := range []string{"PEP", "report filed", refusal, "decision_id", "kyc_propose"} {
					if strings.Contains(all, secret) {
						t.Errorf("%s reads %q: %s", who, secret, around(all, secret))
					}
				}
				if !strings.Contains(all, `"history":[{`) || strings.Contains(owner.Do("GET", path, nil).Body, told) != c.told {
					t.Errorf("%s reads %s", who, all)
				}
			}
			for _, reviewer := range []*servertest.Client{first, second} {
				kyc, export := reviewer.Do("GET", path, nil).Expect(t, 200), reviewer.Do("GET", customer+"/export", nil).Expect(t, 200)
				if !strings.Contains(kyc.Body, internal) || !strings.Contains(export.Body, internal) {
					t.Errorf("the reviewer reads %s and exports %s", kyc.Body, export.Body)
				}
				var k struct {
					History []struct{ Reason, CustomerReason string }
				}
				kyc.Into(t, &k)
				if name == "confirmed rejection" && k.History[0].Reason != internal {
					t.Errorf("the newest entry is %+v", k.History[0])
				}
			}
		})
	}
}

// A reviewer who is the customer reads what customers read.
func TestFourEyes_AReviewerWhoIsTheCustomerReadsNoReason(t *testing.T) {
	s := servertest.Start(t, fourEyes("always"))
	first, second, self := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Advisor)
	path := "/v1/customers/" + first.Create("/v1/customers", person().With("email", email(t, self))) + "/kyc"
	first.Do("PUT", path, documents(document("passport", "P-1", "2030-01-01"))).Expect(t, http.StatusOK)
	first.Do("PATCH", path+"/status", decide("in_review")).Expect(t, http.StatusOK)
	got := first.Do("PATCH", path+"/status", decide("rejected").With("reason", "PEP hit")).Expect(t, http.StatusAccepted).JSON(t)
	second.Do("POST", path+"/decisions/"+got["pending_decision"].(map[string]any)["id"].(string)+"/confirm", nil).Expect(t, http.StatusOK)
	for _, address := range []string{path, strings.TrimSuffix(path, "/kyc") + "/export", "/v1/kyc/cases"} {
		if got := self.Do("GET", address, nil); strings.Contains(got.Body, "PEP hit") {
			t.Errorf("%s: %s", address, got.Body)
		}
	}
	if got := second.Do("GET", path, nil); !strings.Contains(got.Body, "PEP hit") {
		t.Errorf("the second person reads %s", got.Body)
	}
}

// The customer reads the reason of a decision of one person; a second text for them is an error, not a promise.
func TestDecide_OnePersonsReasonIsForTheCustomer(t *testing.T) {
	s := servertest.Start(t)
	owner, first := s.User(access.Customer), s.User(access.Advisor)
	path := inReview(t, owner, first)
	first.Do("PATCH", path+"/status", decide("action_required").With("reason", "internal", "customer_reason", "Upload it again.")).
		ExpectError(t, http.StatusBadRequest, "common.invalid_input")
	first.Do("PATCH", path+"/status", decide("action_required").With("reason", "Upload it again.")).Expect(t, http.StatusOK)
	if got := owner.Do("GET", path, nil).Expect(t, 200); !strings.Contains(got.Body, `"reason":"Upload it again."`) {
		t.Errorf("the owner reads %s", got.Body)
	}
}

// Earlier versions copied the reason of a confirmed decision into the history. The migration separates them, and leaves the reasons of
// decisions of one person.
func TestMigration_TakesReasonsForReviewersOutOfTheHistory(t *testing.T) {
	s := servertest.Start(t, fourEyes("always"))
	s.SkipRecordCheck() // the upgrade of the digests follows the migration at the start
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	path := inReview(t, owner, first)
	first.Do("PATCH", path+"/status", decide("action_required").With("reason", "Upload it again.")).Expect(t, http.StatusOK)
	owner.Do("PUT", path, documents(document("passport", "P-2", "2030-01-01"))).Expect(t, http.StatusOK)
	for _, status := range []string{"pending", "in_review"} {
		first.Do("PATCH", path+"/status", decide(status)).Expect(t, http.StatusOK)
	}
	got := first.Do("PATCH", path+"/status", decide("rejected").With("reason", "PEP hit")).Expect(t, http.StatusAccepted).JSON(t)
	second.Do("POST", path+"/decisions/"+got["pending_decision"].(map[string]any)["id"].(string)+"/confirm", nil).Expect(t, http.StatusOK)
	servertest.Exec(t, s.DB, "UPDATE kyc_changes SET reason = 'PEP hit', decision_id = NULL WHERE to_status = 'rejected'")
	if got := owner.Do("GET", path, nil); !strings.Contains(got.Body, "PEP hit") {
		t.Fatalf("the history is not as earlier versions wrote it: %s", got.Body)
	}
	text, err := migrations.Files.ReadFile("0052_texts_for_customers.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	for statement := range strings.SplitSeq(up, ";") {
		if at := strings.Index(statement, "UPDATE kyc_changes"); at >= 0 {
			servertest.Exec(t, s.DB, statement[at:])
		}
	}
	if got := owner.Do("GET", path, nil).Body; strings.Contains(got, "PEP hit") || !strings.Contains(got, "Upload it again.") {
		t.Errorf("the owner reads %s", got)
	}
	if got := second.Do("GET", path, nil).Body; strings.Count(got, "PEP hit") != 2 { // in the history and in the decision
		t.Errorf("the reviewer reads %s", got)
	}
}
