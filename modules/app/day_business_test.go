package app_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"mime/multipart"
	"os"

	"kontor/store"
)

// customers enters a customer and brings him through his verification.
func (d *day) customers(p people) (id string) {
	id = d.id(p.customer, "/v1/customers", customerBody("Beat"))
	path := "/v1/customers/" + id
	d.do(p.customer, "GET", path, nil)
	d.do(p.customer, "PUT", path, map[string]any{"nationality": "CHE", "address": map[string]any{"city": "Zürich", "country": "CH"}})
	d.do(p.customer, "PUT", path+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": "X1234567", "expiry_date": "2031-05-01", "country": "CHE"}}})
	d.expect(p.customer, "PATCH", path+"/kyc/status", map[string]any{"kyc_status": "in_review"}, 403, "common.rbac_no_rec_access")
	for _, status := range []string{"in_review", "verified"} {
		d.do(p.advisor, "PATCH", path+"/kyc/status", map[string]any{"kyc_status": status, "reason": "seen <in person>"})
	}
	d.do(p.customer, "PUT", path, map[string]any{"phone": nil})
	d.do(p.advisor, "GET", path+"/kyc", nil)
	d.do(p.advisor, "GET", "/v1/customers?search.kyc_status=verified&stack=kyc_status", nil)
	d.expect(d.s.User(), "GET", path, nil, 403, "common.rbac_no_rec_access")
	return id
}

// identities enters two personas, links them, and links one to its user.
func (d *day) identities(p people) {
	if !d.has("POST /v1/personas") {
		return
	}
	anna := d.id(p.advisor, "/v1/personas", map[string]any{"first_name": "Anna", "last_name": "Muster", "date_of_birth": "1990-04-12", "metadata": map[string]any{"a": "<"}})
	jan := d.id(p.advisor, "/v1/personas", map[string]any{"first_name": "Jan", "last_name": "Muster", "date_of_birth": "2015-02-28"})
	path := "/v1/personas/" + anna
	d.do(p.advisor, "GET", path, nil)
	d.do(p.advisor, "GET", "/v1/personas?search.last_name=muster", nil)
	d.do(p.advisor, "PUT", path, map[string]any{"first_name": "Anna", "last_name": "Muster-Meier", "date_of_birth": "1990-04-12", "nationality": "CHE"})
	link := d.id(p.advisor, path+"/links", map[string]any{"linked_persona_id": jan, "relation": "parent"})
	d.do(p.advisor, "GET", path+"/links", nil)
	d.do(p.advisor, "POST", path+"/links/"+link+"/accept", nil)
	d.do(p.advisor, "DELETE", path+"/links/"+link, nil)
	d.expect(p.customer, "GET", path, nil, 403, "common.rbac_no_rec_access")
	d.do(p.advisor, "POST", path+"/users", map[string]any{"user_id": p.customer.UserID})
	d.do(p.customer, "POST", path+"/users/"+p.customer.UserID+"/accept", nil)
	d.do(p.customer, "GET", "/v1/profile/personas", nil)
	d.do(p.customer, "GET", path, nil)
	d.do(p.advisor, "GET", path+"/users", nil)
	d.do(p.advisor, "DELETE", path+"/users/"+p.customer.UserID, nil)
	d.expect(p.customer, "GET", path, nil, 403, "common.rbac_no_rec_access")
	d.do(p.advisor, "DELETE", path, nil)
}

// payers enters a payer of the customer.
func (d *day) payers(customer string) {
	if !d.has("POST /v1/payers") {
		return
	}
	payer := d.id(d.admin, "/v1/payers", map[string]any{"customer_id": customer, "company": "Muster & Co <AG>", "country": "CHE"})
	d.do(d.admin, "GET", "/v1/payers/"+payer, nil)
	d.do(d.admin, "GET", "/v1/payers?company=muster&country=CHE&active=true", nil)
	d.do(d.admin, "PUT", "/v1/payers/"+payer, map[string]any{"name": "Anna Muster"})
	d.do(d.admin, "DELETE", "/v1/payers/"+payer, nil)
}

// talk lets an advisor and a customer write to each other.
func (d *day) talk(p people) {
	if !d.has("POST /v1/chats") {
		return
	}
	third, fourth := d.s.User(), d.s.User()
	chat := d.id(p.advisor, "/v1/chats", map[string]any{"participants": []string{p.customer.UserID, third.UserID}, "metadata": map[string]any{"topic": "<&>"}})
	path := "/v1/chats/" + chat
	d.do(p.advisor, "POST", path+"/messages", map[string]any{"content": "Grüezi <b>miteinander</b> & willkommen"})
	d.do(p.customer, "GET", "/v1/chats", nil)
	d.do(p.customer, "GET", path, nil)
	d.do(p.customer, "GET", path+"/messages", nil)
	d.do(p.customer, "POST", path+"/read", nil)
	d.do(p.advisor, "POST", path+"/participants", map[string]any{"participants": []string{fourth.UserID}})
	d.do(p.advisor, "DELETE", path+"/participants/"+third.UserID, nil)
	d.expect(third, "GET", path, nil, 403, "common.rbac_no_rec_access")
}

// work gives the customer a task.
func (d *day) work(p people, customer string) {
	tasks := "/v1/customers/" + customer + "/tasks"
	if !d.has("POST /v1/customers/{customer_id}/tasks") {
		return
	}
	task := tasks + "/" + d.id(p.advisor, tasks, map[string]any{"title": "Sign <the contract>", "category": "sign", "weight": 3})
	d.do(p.advisor, "GET", task, nil)
	d.do(p.advisor, "GET", tasks, nil)
	d.do(p.advisor, "PUT", task, map[string]any{"title": "Sign the contract", "category": "sign", "is_urgent": true})
	var assigned struct {
		ID        string
		Assignees []struct{ ID string }
	}
	d.do(p.advisor, "POST", task+"/assignees", map[string]any{"user_id": p.advisor.UserID, "weight": 1}).Into(d, &assigned)
	own := assigned.ID
	if n := len(assigned.Assignees); n > 0 {
		own = assigned.Assignees[n-1].ID
	}
	d.do(p.advisor, "DELETE", task+"/assignees/"+own, nil)
	d.do(p.advisor, "POST", task+"/assignees", map[string]any{"user_id": p.customer.UserID, "weight": 2}).Into(d, &assigned)
	theirs := assigned.ID
	if n := len(assigned.Assignees); n > 0 {
		theirs = assigned.Assignees[n-1].ID
	}
	d.do(p.customer, "GET", "/v1/tasks", nil)
	d.do(p.advisor, "PATCH", task+"/status", map[string]any{"status": "in_progress"})
	d.do(p.customer, "PATCH", task+"/assignees/"+theirs, map[string]any{"task_completed": true})
	d.do(p.advisor, "DELETE", task, nil)
}

// profiles gives the customer a picture and his way of writing numbers.
func (d *day) profiles(p people) {
	if !d.has("POST /v1/profile/avatar") {
		return
	}
	if d.has("GET /v1/profile") {
		d.do(p.customer, "GET", "/v1/profile", nil)
	}
	d.do(p.customer, "GET", "/v1/profile/preferences", nil)
	d.do(p.customer, "PUT", "/v1/profile/preferences", map[string]any{"theme": "dark", "number_format": "1'234.56"})
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "me.png")
	if err == nil {
		err = png.Encode(file, image.NewGray(image.Rect(0, 0, 200, 100)))
	}
	if err != nil {
		d.Fatal(err)
	}
	w.Close()
	var avatar struct{ URL string }
	d.do(p.customer.With("Content-Type", w.FormDataContentType()), "POST", "/v1/profile/avatar", form.Bytes()).Into(d, &avatar)
	if at := bytes.Index([]byte(avatar.URL), []byte("/v1/")); at >= 0 && d.served(avatar.URL[at:]) {
		d.do(d.s.Anonymous(), "GET", avatar.URL[at:], nil)
	}
	d.do(p.customer, "DELETE", "/v1/profile/avatar", nil)
}

// served tells whether an address is that of a row.
func (d *day) served(path string) bool {
	for _, e := range d.s.Table() {
		if e.Method == "GET" && matches(splitPath(e.Path), splitPath(path)) >= 0 {
			return true
		}
	}
	return false
}

// invoices reads a QR-bill.
func (d *day) invoices() {
	file, err := os.ReadFile("../../testdata/qr/files/formats-b57-06.png")
	if err != nil {
		d.Fatal(err)
	}
	d.do(d.admin, "POST", "/v1/invoices/qrcode", map[string]any{"base64_file": base64.StdEncoding.EncodeToString(file)})
}

// notified looks at what everybody was told.
func (d *day) notified(p people, customer string) {
	if !d.has("GET /v1/notifications") {
		return
	}
	d.do(d.s.Keyed(), "POST", "/v1/notifications/trigger", map[string]any{"event": "customer_status_changed", "content": "hello <you>",
		"rec_type": "customers", "rec_id": customer, "user_ids": []string{p.customer.UserID}})
	d.stream(p.customer, "GET", "open")
	d.stream(p.customer, "POST", "open")
	var page struct{ Data []struct{ ID string } }
	d.do(p.customer, "GET", "/v1/notifications?sort=-created_at", nil).Into(d, &page)
	if len(page.Data) == 0 {
		d.Fatal("nobody told the customer anything")
	}
	d.do(p.customer, "GET", "/v1/notifications/unread-count", nil)
	d.do(p.customer, "GET", "/v1/notifications/"+page.Data[0].ID, nil)
	d.do(p.customer, "PATCH", "/v1/notifications/"+page.Data[0].ID+"/read", map[string]any{"read": true})
	d.do(p.customer, "POST", "/v1/notifications/read", map[string]any{"rec_type": "customers", "rec_id": customer})
	d.do(p.customer, "GET", "/v1/notifications/preferences", nil)
	d.do(p.customer, "PUT", "/v1/notifications/preferences", map[string]any{})
	var triggered struct {
		NotificationID string `json:"notification_id"`
	}
	d.do(d.s.Keyed(), "POST", "/v1/notifications/trigger", map[string]any{"user_ids": []string{p.customer.UserID}}).Into(d, &triggered)
	d.do(d.admin, "DELETE", "/v1/notifications/"+triggered.NotificationID, nil)

	var deliveries struct{ Data []struct{ ID string } }
	d.do(d.admin, "GET", "/v1/notifications/deliveries?limit=1", nil).Into(d, &deliveries)
	dead := deliveries.Data[0].ID
	err := d.s.DB.InTx(d.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(d.Context(), `UPDATE deliveries SET status = 'dead', sent_at = NULL WHERE id = $1`, dead)
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
	d.do(d.admin, "POST", "/v1/notifications/deliveries/"+dead+"/retry", nil)
}
