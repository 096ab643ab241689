package privacy_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"mime/multipart"
	"strings"
	"testing"

	"kontor/modules/app"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// check compares the records with the audit trail, as "kontor check" does.
func check(t *testing.T, s *servertest.Server) error {
	t.Helper()
	_, err := inspect.Check(t.Context(), storetest.Source(storetest.OptionsOf(t, s.DB)), func(ctx context.Context, e *audittrail.Evidence) error {
		_, err := app.CheckRecords(ctx, e)
		return err
	})
	return err
}

// picture returns a form with a picture, and its media type.
func picture(t *testing.T) (mediaType string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	file, err := form.CreateFormFile("file", "me.png")
	if err == nil {
		err = errors.Join(png.Encode(file, image.NewNRGBA(image.Rect(0, 0, 20, 20))), form.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), b.Bytes()
}

// The check passes after a lawful erasure of a user who had a picture, preferences and saved views. Views of others stay: the erasure
// lists them.
func TestErasure_OfAProfileIsNoManipulation(t *testing.T) {
	s := servertest.Start(t)
	admin, colleague := s.Admin(), s.User(access.Advisor)
	reason := map[string]any{"reason": "request"}
	view := map[string]any{"list": "/users", "name": "Mine", "query": "q=Plantedname"}
	for name, set := range map[string]func(c *servertest.Client){
		"preferences": func(c *servertest.Client) {
			c.Do("PUT", "/v1/profile/preferences", map[string]any{"theme": "dark"}).Expect(t, 200)
			if got := c.Do("GET", "/v1/profile/preferences", nil).Expect(t, 200).JSON(t)["theme"]; got != "dark" {
				t.Errorf("the theme is %v", got)
			}
		},
		"a picture": func(c *servertest.Client) {
			mediaType, body := picture(t)
			c.With("Content-Type", mediaType).Do("POST", "/v1/profile/avatar", body).Expect(t, 200)
			if got := c.Do("GET", "/v1/profile", nil).Expect(t, 200).JSON(t)["avatar"]; got == nil {
				t.Error("there is no picture")
			}
		},
		"a saved view": func(c *servertest.Client) {
			c.Do("PUT", "/v1/profile/views", view).Expect(t, 200)
			if got := rows(t, c.Do("GET", "/v1/profile/views", nil)); len(got) != 1 || got[0]["query"] != view["query"] {
				t.Errorf("the views are %v", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			user := s.User(access.Customer)
			set(user)
			erased := erase(t, admin, "/v1/users/"+user.UserID)
			if again := admin.Do("POST", "/v1/users/"+user.UserID+"/erasure", reason).Expect(t, 200).JSON(t); again["id"] != erased["id"] {
				t.Errorf("the second erasure is %v", again)
			}
			if err := check(t, s); err != nil {
				t.Errorf("after the erasure: %v", err)
			}
		})
	}
	colleague.Do("PUT", "/v1/profile/views", view).Expect(t, 200)
	user := s.User(access.Customer)
	user.Do("PATCH", "/v1/users/"+user.UserID, map[string]any{"display_name": "Plantedname"}).Expect(t, 200)
	customer := newCustomer(user, "planted@example.ch")
	persona := admin.Create("/v1/personas", map[string]any{"first_name": "Planted", "last_name": "Name", "date_of_birth": "1980-01-01"})
	for _, path := range []string{"/v1/customers/" + customer, "/v1/users/" + user.UserID, "/v1/personas/" + persona} {
		why := ""
		for _, left := range erase(t, admin, path)["left"].([]any) {
			if one := left.(map[string]any); one["what"] == "views_of_others" {
				why = one["why"].(string)
			}
		}
		if why == "" {
			t.Errorf("%s: saved views of others are not listed as not erased", path)
		}
	}
	if got := rows(t, colleague.Do("GET", "/v1/profile/views", nil)); len(got) != 1 {
		t.Errorf("the views of a colleague are %v", got)
	}
}

// The check reports every record that differs, of all types.
func TestCheck_ReportsEveryBreak(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck()
	admin := s.Admin()
	one, two := newCustomer(admin, "one@example.ch"), newCustomer(admin, "two@example.ch")
	payer := admin.Create("/v1/payers", map[string]any{"customer_id": one, "name": "Hans"})
	held := newCustomer(admin, "three@example.ch")
	admin.Do("PUT", "/v1/customers/"+held+"/legal-hold", map[string]any{"reason": "A dispute."}).Expect(t, 200)
	if err := check(t, s); err != nil {
		t.Fatal(err)
	}
	servertest.Exec(t, s.DB, "UPDATE customers SET kyc_status = 'verified' WHERE id = $1 OR id = $2", one, two)
	servertest.Exec(t, s.DB, "DELETE FROM legal_holds")
	servertest.Exec(t, s.DB, "UPDATE payers SET name = 'Other'")
	err := check(t, s)
	var breaks *records.Breaks
	if !errors.As(err, &breaks) || breaks.Count != 4 {
		t.Fatalf("got %v, want four breaks", err)
	}
	for _, want := range []string{"customers/" + one, "customers/" + two, "legal_holds/" + held, "payers/" + payer} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
}
