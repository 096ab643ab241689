package privacy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// A hold on one record of a person prevents the erasure of all others, by each kind of evidence. Without the hold, the erasure works.
func TestErasure_WaitsForHoldsOnOtherRecordsOfThePerson(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	type body = map[string]any
	number := 0
	customer := func(by *servertest.Client, members body) string {
		number++
		all := body{"first_name": "Ada", "last_name": "Muster", "email": strings.Repeat("x", number) + "@person.example"}
		for name, value := range members {
			all[name] = value
		}
		return "/v1/customers/" + by.Create("/v1/customers", all)
	}
	put := func(path string, members body) { advisor.Do("PUT", path, members).Expect(t, 200) }
	user := func() *servertest.Client { return s.User(access.Customer) }
	persona := func(of *servertest.Client, first, last, born string) string {
		id := admin.Create("/v1/personas", body{"first_name": first, "last_name": last, "date_of_birth": born})
		admin.Do("POST", "/v1/personas/"+id+"/users", body{"user_id": of.UserID}).Expect(t, 201)
		return "/v1/personas/" + id
	}
	address := func(of *servertest.Client) string {
		return rows(t, of.Do("GET", "/v1/users/"+of.UserID+"/credentials", nil))[0]["value"].(string)
	}
	for name, records := range map[string]func() (held, erased string){
		"the same e-mail address": func() (string, string) {
			return customer(advisor, body{"email": "one@person.example"}), customer(advisor, body{"email": "One@person.example"})
		},
		"the same phone number": func() (string, string) {
			return customer(advisor, body{"phone": "+41791110001"}), customer(advisor, body{"phone": "+41 79 111 00 01"})
		},
		"a former address of the erased record": func() (string, string) {
			held, erased := customer(advisor, body{"email": "two@person.example"}), customer(advisor, body{"email": "two@person.example"})
			put(erased, body{"email": "two-new@person.example"})
			return held, erased
		},
		"a former address of the held record": func() (string, string) {
			held, erased := customer(advisor, body{"email": "three@person.example"}), customer(advisor, body{"email": "three@person.example"})
			put(held, body{"email": "three-new@person.example"})
			return held, erased
		},
		"former addresses of both": func() (string, string) {
			held, erased := customer(advisor, body{"email": "four@person.example"}), customer(advisor, body{"email": "four@person.example"})
			put(held, body{"email": "four-a@person.example"})
			put(erased, body{"email": "four-b@person.example"})
			return held, erased
		},
		"names in another order and the date of birth": func() (string, string) {
			return customer(advisor, body{"first_name": "Otto", "last_name": "Halter", "date_of_birth": "1961-01-01"}),
				customer(advisor, body{"first_name": "Halter", "last_name": "Otto", "date_of_birth": "1961-01-01"})
		},
		"a former name of the erased record": func() (string, string) {
			held := customer(advisor, body{"first_name": "Rita", "last_name": "Vogel", "date_of_birth": "1962-01-01"})
			erased := customer(advisor, body{"first_name": "Rita", "last_name": "Vogel", "date_of_birth": "1962-01-01"})
			put(erased, body{"last_name": "Meise"})
			return held, erased
		},
		"a former date of birth of the held record": func() (string, string) {
			held := customer(advisor, body{"first_name": "Rosa", "last_name": "Vogel", "date_of_birth": "1963-01-01"})
			erased := customer(advisor, body{"first_name": "Rosa", "last_name": "Vogel", "date_of_birth": "1963-01-01"})
			put(held, body{"date_of_birth": "1973-01-01"})
			return held, erased
		},
		"a user with both addresses": func() (string, string) {
			of := user()
			email, path := address(of), "/v1/users/"+of.UserID+"/credentials"
			id := admin.Create(path, body{"credential_type": "phone", "credential_value": "+41791110002"})
			sms := rows(t, admin.Do("GET", "/v1/notifications/deliveries?search.to=%2B41791110002", nil))[0]["text"].(string)
			of.Do("PUT", path+"/"+id+"/validate", body{"otp": regexp.MustCompile(`\b\d{6}\b`).FindString(sms), "password": servertest.Password}).Expect(t, 200)
			return customer(advisor, body{"email": email}), customer(advisor, body{"phone": "+41791110002"})
		},
		"a persona of the user who is the erased customer": func() (string, string) {
			of := user()
			persona(of, "Nina", "Persona", "1964-01-01")
			return customer(advisor, body{"first_name": "Nina", "last_name": "Persona", "date_of_birth": "1964-01-01"}), customer(advisor, body{"email": address(of)})
		},
		"a former name of the persona of the held customer's user": func() (string, string) {
			of := user()
			put(persona(of, "Nora", "Persona", "1965-01-01"), body{"first_name": "Nora", "last_name": "Else", "date_of_birth": "1965-01-01"})
			return customer(advisor, body{"email": address(of)}), customer(advisor, body{"first_name": "Nora", "last_name": "Persona", "date_of_birth": "1965-01-01"})
		},
		"the customer has created the held record": func() (string, string) {
			of := user()
			return customer(of, body{}), customer(advisor, body{"email": address(of)})
		},
		"the creator's address was removed from the erased record": func() (string, string) {
			of := user()
			erased := customer(of, body{"email": address(of)})
			put(erased, body{"email": "five@person.example"})
			return customer(advisor, body{"email": address(of)}), erased
		},
		"a persona with the identity": func() (string, string) {
			id := admin.Create("/v1/personas", body{"first_name": "Paul", "last_name": "Persona", "date_of_birth": "1966-01-01"})
			return customer(advisor, body{"first_name": "Paul", "last_name": "Persona", "date_of_birth": "1966-01-01"}), "/v1/personas/" + id
		},
		"a persona, by the second record of its person": func() (string, string) {
			id := admin.Create("/v1/personas", body{"first_name": "Pia", "last_name": "Persona", "date_of_birth": "1967-01-01"})
			customer(advisor, body{"first_name": "Pia", "last_name": "Persona", "date_of_birth": "1967-01-01", "email": "six@person.example"})
			return customer(advisor, body{"email": "six@person.example"}), "/v1/personas/" + id
		},
		"a user, by the second record of their person": func() (string, string) {
			of := user()
			erased := customer(advisor, body{"first_name": "Rolf", "last_name": "Doppel", "date_of_birth": "1968-01-01", "email": address(of)})
			held := customer(advisor, body{"first_name": "Rolf", "last_name": "Doppel", "date_of_birth": "1968-01-01"})
			put(erased, body{"first_name": "Rolf", "last_name": "Anders"})
			return held, "/v1/users/" + of.UserID
		},
	} {
		t.Run(name, func(t *testing.T) {
			held, erased := records()
			reason := body{"reason": "request"}
			admin.Do("PUT", held+"/legal-hold", body{"reason": "A dispute."}).Expect(t, 200)
			refused := admin.Do("POST", erased+"/erasure", reason)
			refused.ExpectError(t, 409, "privacy.on_hold")
			if id := strings.TrimPrefix(held, "/v1/customers/"); !strings.Contains(refused.Body, id) {
				t.Errorf("no customer %s in %s", id, refused.Body)
			}
			if strings.HasPrefix(erased, "/v1/customers/") {
				if r := admin.Do("GET", erased+"/relationship", nil).Expect(t, 200).JSON(t); r["on_hold"] != true || r["erasable"] != false {
					t.Errorf("the relationship is %v", r)
				}
			}
			admin.Do("DELETE", held+"/legal-hold", nil).Expect(t, 200)
			erase(t, admin, erased)
		})
	}
	// The refusal does not name a customer to a caller who may not read it.
	one, other := customer(advisor, body{"email": "seven@person.example"}), customer(advisor, body{"email": "seven@person.example"})
	admin.Do("PUT", other+"/legal-hold", body{"reason": "A dispute.", "until": "2099-01-01"}).Expect(t, 200)
	eraser := user()
	for _, grant := range []body{{"endpoint": "POST /v1/customers/{id}/erasure"},
		{"rec_type": "customers", "rec_id": strings.TrimPrefix(one, "/v1/customers/"), "permissions": []string{"read", "delete"}}} {
		grant["user_id"] = eraser.UserID
		admin.Do("POST", "/v1/rbac/grants", grant).Expect(t, 201)
	}
	refused := eraser.Do("POST", one+"/erasure", body{"reason": "request"})
	refused.ExpectError(t, 409, "privacy.on_hold")
	if strings.Contains(refused.Body, "details") {
		t.Errorf("the eraser of one record reads %s", refused.Body)
	}
	admin.Do("DELETE", other+"/legal-hold", nil).Expect(t, 200)

	// A hold concerns one person: neither a namesake, nor who shares a phone, nor the other customers of a user or an advisor.
	owner := user()
	admin.Do("PUT", customer(owner, body{})+"/legal-hold", body{"reason": "A dispute."}).Expect(t, 200)
	admin.Do("PUT", customer(advisor, body{"date_of_birth": "1970-01-01", "phone": "+41791110003"})+"/legal-hold", body{"reason": "A dispute."}).Expect(t, 200)
	for _, free := range []string{customer(owner, body{}), customer(advisor, body{}), customer(advisor, body{"date_of_birth": "1971-01-01"}),
		customer(advisor, body{"first_name": "Emil", "phone": "+41791110003"})} {
		erase(t, admin, free)
	}
}

func rows(t testing.TB, r servertest.Response) []map[string]any {
	t.Helper()
	var page struct{ Data []map[string]any }
	r.Expect(t, 200).Into(t, &page)
	return page.Data
}

// The list of customers that are due has exactly those whose erasure is allowed because the retention period is over.
func TestDue_IsWhatTheErasureAllows(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	number := 0
	former := func(ended time.Time, members map[string]any) string {
		number++
		all := map[string]any{"first_name": "Ada", "last_name": "Muster", "email": strings.Repeat("d", number) + "@due.example",
			"date_of_birth": fmt.Sprintf("19%02d-03-04", number), "nationality": "CHE"}
		for name, value := range members {
			all[name] = value
		}
		id := admin.Create("/v1/customers", all)
		for _, status := range []string{"pending", "in_review", "verified"} {
			admin.Do("PATCH", "/v1/customers/"+id+"/kyc/status", map[string]any{"kyc_status": status}).Expect(t, 200)
		}
		admin.Do("PUT", "/v1/customers/"+id+"/relationship", map[string]any{"ended_at": ended.Format(time.RFC3339)}).Expect(t, 200)
		return id
	}
	now := s.Clock.Now()
	want := map[string]bool{}
	want[former(now, nil)] = true
	held := former(now, map[string]any{"email": "same@due.example"})
	want[held], want[former(now, map[string]any{"email": "same@due.example"})] = false, false
	verifiedAgain := former(now, nil)
	want[verifiedAgain] = false
	talkedDown := former(now, nil) // the stored end is before the evidence, as an earlier version accepted it
	want[talkedDown] = false
	admin.Do("PUT", "/v1/customers/"+held+"/legal-hold", map[string]any{"reason": "A dispute."}).Expect(t, 200)

	s.Clock.Advance(time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC).Sub(now.UTC()))
	admin = s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	for _, status := range []string{"expired", "pending", "in_review", "verified"} {
		admin.Do("PATCH", "/v1/customers/"+verifiedAgain+"/kyc/status", map[string]any{"kyc_status": status}).Expect(t, 200)
	}
	s.SkipRecordCheck()
	servertest.Exec(t, s.DB, "UPDATE relationships SET ended_at = 1262304000000 WHERE customer_id = $1", talkedDown)
	leap := former(s.Clock.Now(), nil)

	check := func(day string) {
		t.Helper()
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(at.Sub(s.Clock.Now()))
		admin = s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
		answer := admin.Do("GET", "/v1/erasures/due?limit=100", nil).Expect(t, 200)
		listed := 0
		for id, due := range want {
			if got := strings.Contains(answer.Body, id); got != due {
				t.Errorf("%s: %s is listed: %t, want %t", day, id, got, due)
			}
			r := admin.Do("GET", "/v1/customers/"+id+"/relationship", nil).Expect(t, 200).JSON(t)
			if r["erasable"] != due {
				t.Errorf("%s: %s is erasable: %v, want %t", day, id, r, due)
			}
			if due {
				listed++
			}
		}
		if total := answer.JSON(t)["total"]; total != float64(listed) {
			t.Errorf("%s: the total is %v, want %d", day, total, listed)
		}
	}
	want[leap] = false
	check("2038-03-01") // ten years after 29 February end on 1 March
	want[leap] = true
	check("2038-03-02")
	admin.Do("DELETE", "/v1/customers/"+held+"/legal-hold", nil).Expect(t, 200)
	for id := range want {
		want[id] = id != talkedDown && id != verifiedAgain
	}
	check("2038-03-03")
}
