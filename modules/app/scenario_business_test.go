package app_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"os"
	"strings"

	"kontor/server/servertest"
	"kontor/store"
)

// customers creates a customer and completes its verification.
func (s *scenario) customers(p people) (id string) {
	id = s.id(p.customer, "/v1/customers", customerBody("Beat"))
	path := "/v1/customers/" + id
	s.do(p.customer, "GET", path, nil)
	s.do(p.customer, "PUT", path, map[string]any{"nationality": "CHE", "address": map[string]any{"city": "Zürich", "country": "CH"}})
	s.do(p.customer, "PUT", path+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": "X1234567", "expiry_date": "2031-05-01", "country": "CHE"}}})
	s.expect(p.customer, "PATCH", path+"/kyc/status", map[string]any{"kyc_status": "in_review"}, 403, "common.rbac_no_rec_access")
	s.evidence(p, path)
	for _, status := range []string{"in_review", "verified"} {
		s.do(p.advisor, "PATCH", path+"/kyc/status", map[string]any{"kyc_status": status, "reason": "seen <in person>"})
	}
	s.review(p, path+"/kyc")
	s.imports(p)
	s.do(p.customer, "PUT", path, map[string]any{"phone": nil})
	s.do(p.advisor, "GET", path+"/kyc", nil)
	s.do(p.advisor, "GET", "/v1/customers?search.kyc_status=verified&stack=kyc_status", nil)
	s.do(p.advisor, "GET", "/v1/customers?q=keller&sort=last_name", nil)
	s.do(p.customer, "GET", "/v1/search?q=keller", nil)
	s.expect(s.server.User(), "GET", path, nil, 403, "common.rbac_no_rec_access")
	return id
}

// imports imports a customer, and a row that is rejected.
func (s *scenario) imports(p people) {
	file := "first_name,last_name,email\nNora,<b>Weber,nora@example.ch\n,,\n"
	var i struct{ ID string }
	s.do(p.advisor.With("Content-Type", "text/csv"), "POST", "/v1/customers/import?on_duplicate=reject", file).Into(s, &i)
	if err := s.server.Imports.Run(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.do(p.advisor, "GET", "/v1/imports", nil)
	s.do(p.advisor, "GET", "/v1/imports/"+i.ID, nil)
	s.do(p.advisor, "GET", "/v1/imports/"+i.ID+"/rejected", nil)
}

// review proposes the level enhanced of a verified customer three times: it is withdrawn, rejected and confirmed. Then it takes another
// case and gives it back.
func (s *scenario) review(p people, path string) {
	second := s.server.Admin()
	for _, end := range []struct {
		verb string
		by   *servertest.Client
	}{{"withdraw", p.advisor}, {"reject", second}, {"confirm", second}} {
		var proposed struct {
			PendingDecision struct{ ID string } `json:"pending_decision"`
		}
		s.asked()
		answer := p.advisor.Do("PATCH", path+"/status", map[string]any{"verification_level": "enhanced", "reason": "funds <documented>"}).
			Expect(s, http.StatusAccepted)
		answer.Into(s, &proposed)
		s.answered(s.row("PATCH", path+"/status"), path+"/status", answer)
		s.do(second, "GET", "/v1/kyc/cases?search.second_person=true", nil)
		s.do(end.by, "POST", path+"/decisions/"+proposed.PendingDecision.ID+"/"+end.verb, map[string]any{"reason": "no <proof>"})
	}
	other := s.id(p.customer, "/v1/customers", customerBody("Ueli"))
	s.do(p.customer, "PUT", "/v1/customers/"+other+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": "X7", "expiry_date": "2031-05-01", "country": "CHE"}}})
	for _, verb := range []string{"take", "give-back"} {
		s.do(p.advisor, "POST", "/v1/kyc/cases/"+verb, map[string]any{"customer_ids": []string{other}})
	}
	s.do(p.advisor, "GET", "/v1/kyc/reasons", nil)
}

// evidence uploads a file of a document, reads it in all ways and deletes it.
func (s *scenario) evidence(p people, customer string) {
	var kyc struct{ Documents []struct{ ID string } }
	s.do(p.customer, "GET", customer+"/kyc", nil).Into(s, &kyc)
	file := "/v1/files/" + s.file(p.customer, customer+"/kyc/documents/"+kyc.Documents[0].ID+"/files")
	s.do(p.customer, "GET", customer+"/kyc/files", nil)
	for _, path := range []string{file, file + "/content", file + "/preview?width=64"} {
		s.do(p.advisor, "GET", path, nil)
	}
	s.expect(s.server.User(), "GET", file+"/content", nil, 403, "common.rbac_no_rec_access")
	s.do(p.customer, "DELETE", file, nil)
}

// file uploads a picture and returns the id of the file.
func (s *scenario) file(c *servertest.Client, path string) string {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 40, 20))); err != nil {
		s.Fatal(err)
	}
	named := c.With("Content-Type", "image/png", "Content-Disposition", `attachment; filename="Beleg <1>.png"`)
	return s.id(named, path, picture.Bytes())
}

// personas creates two personas, links them, and links one to its user.
func (s *scenario) personas(p people) {
	anna := s.id(p.advisor, "/v1/personas", map[string]any{"first_name": "Anna", "last_name": "Muster", "date_of_birth": "1990-04-12", "metadata": map[string]any{"a": "<"}})
	jan := s.id(p.advisor, "/v1/personas", map[string]any{"first_name": "Jan", "last_name": "Muster", "date_of_birth": "2015-02-28"})
	path := "/v1/personas/" + anna
	s.do(p.advisor, "GET", path, nil)
	s.do(p.advisor, "GET", "/v1/personas?search.last_name=muster", nil)
	s.do(p.advisor, "PUT", path, map[string]any{"first_name": "Anna", "last_name": "Muster-Meier", "date_of_birth": "1990-04-12", "nationality": "CHE"})
	link := s.id(p.advisor, path+"/links", map[string]any{"linked_persona_id": jan, "relation": "parent"})
	s.do(p.advisor, "GET", path+"/links", nil)
	s.do(p.advisor, "POST", path+"/links/"+link+"/accept", nil)
	s.do(p.advisor, "DELETE", path+"/links/"+link, nil)
	s.expect(p.customer, "GET", path, nil, 403, "common.rbac_no_rec_access")
	s.do(p.advisor, "POST", path+"/users", map[string]any{"user_id": p.customer.UserID})
	s.do(p.customer, "POST", path+"/users/"+p.customer.UserID+"/accept", nil)
	s.do(p.customer, "GET", "/v1/profile/personas", nil)
	s.do(p.customer, "GET", path, nil)
	s.do(p.advisor, "GET", path+"/users", nil)
	s.do(p.advisor, "DELETE", path+"/users/"+p.customer.UserID, nil)
	s.expect(p.customer, "GET", path, nil, 403, "common.rbac_no_rec_access")
	s.do(p.advisor, "DELETE", path, nil)
}

// payers creates a payer of the customer.
func (s *scenario) payers(customer string) {
	payer := s.id(s.admin, "/v1/payers", map[string]any{"customer_id": customer, "company": "Muster & Co <AG>", "country": "CHE"})
	s.do(s.admin, "GET", "/v1/payers/"+payer, nil)
	s.do(s.admin, "GET", "/v1/payers?company=muster&country=CHE&active=true", nil)
	s.do(s.admin, "PUT", "/v1/payers/"+payer, map[string]any{"name": "Anna Muster"})
	s.do(s.admin, "DELETE", "/v1/payers/"+payer, nil)
}

// privacy exports and erases persons. One customer stays, with the end of its relationship and a legal hold.
func (s *scenario) privacy(p people) {
	kept := "/v1/customers/" + s.id(s.admin, "/v1/customers", customerBody("Carla"))
	s.do(s.admin, "PUT", kept+"/relationship", map[string]any{"ended_at": "2026-01-01T00:00:00Z"})
	s.do(p.advisor, "GET", kept+"/relationship", nil)
	s.do(p.advisor, "POST", "/v1/customers/duplicates", map[string]any{"first_name": "Anna", "last_name": "Keller"})
	s.do(p.advisor, "POST", kept+"/duplicates/"+s.id(s.admin, "/v1/customers", customerBody("Anna"))+"/dismiss", nil)
	s.do(p.advisor, "POST", kept+"/notify", map[string]any{"text": "Please <call> us.", "user_ids": []string{p.customer.UserID}})
	s.do(s.admin, "PUT", kept+"/legal-hold", map[string]any{"reason": "A <dispute>.", "until": "2030-01-01"})
	s.do(s.admin, "GET", kept+"/legal-hold", nil)
	s.do(s.admin, "DELETE", kept+"/legal-hold", nil)
	s.do(s.admin, "PUT", kept+"/legal-hold", map[string]any{"reason": "Another dispute."})
	s.expect(s.admin, "POST", kept+"/erasure", map[string]any{"reason": "request"}, 409, "privacy.on_hold")

	reason := map[string]any{"reason": "request"}
	customer := "/v1/customers/" + s.id(s.admin, "/v1/customers", customerBody("Dora"))
	s.do(p.advisor, "GET", customer+"/export", nil)
	s.do(s.admin, "GET", customer+"/report", nil)
	s.do(s.admin, "POST", customer+"/erasure", reason)
	user := s.server.User()
	s.do(s.admin, "GET", "/v1/users/"+user.UserID+"/export", nil)
	s.do(s.admin, "GET", "/v1/users/"+user.UserID+"/report", nil)
	s.do(s.admin, "POST", "/v1/users/"+user.UserID+"/erasure", reason)
	persona := "/v1/personas/" + s.id(s.admin, "/v1/personas", map[string]any{"first_name": "Dora", "last_name": "Muster", "date_of_birth": "1990-04-12"})
	s.do(s.admin, "GET", persona+"/export", nil)
	s.do(s.admin, "GET", persona+"/report", nil)
	var erased struct{ ID string }
	s.do(s.admin, "POST", persona+"/erasure", reason).Into(s, &erased)
	s.do(s.admin, "GET", "/v1/erasures", nil)
	s.do(s.admin, "GET", "/v1/erasures/due", nil)
	s.do(s.admin, "GET", "/v1/erasures/"+erased.ID, nil)
}

// inbox lets a customer write to the bank, and an advisor answer.
func (s *scenario) inbox(p people) {
	chat := s.id(p.customer, "/v1/chats/bank", nil)
	s.do(p.customer, "POST", "/v1/chats/"+chat+"/messages", map[string]any{"content": "Grüezi"})
	thread := "/v1/inbox/" + chat
	for _, path := range []string{"/v1/inbox?view=open", "/v1/inbox/templates", thread, thread + "/messages"} {
		s.do(p.advisor, "GET", path, nil)
	}
	s.do(p.advisor, "PATCH", thread, map[string]any{"assignee": p.advisor.UserID})
	s.do(p.advisor, "POST", thread+"/messages", map[string]any{"content": "Grüezi"})
	s.do(p.advisor, "POST", thread+"/notes", map[string]any{"content": "A note."})
	s.do(p.advisor, "GET", thread+"/notes", nil)
	s.expect(p.customer, "GET", thread, nil, 403, "common.rbac_no_rec_access")
}

// chats creates a chat of an advisor and a customer.
func (s *scenario) chats(p people) {
	third, fourth := s.server.User(), s.server.User()
	chat := s.id(p.advisor, "/v1/chats", map[string]any{"participants": []string{p.customer.UserID, third.UserID}, "metadata": map[string]any{"topic": "<&>"}})
	path := "/v1/chats/" + chat
	message := s.id(p.advisor, path+"/messages", map[string]any{"content": "Grüezi <b>miteinander</b> & willkommen"})
	s.file(p.advisor, path+"/messages/"+message+"/files")
	s.do(p.customer, "GET", path+"/files", nil)
	s.do(p.customer, "GET", "/v1/chats", nil)
	s.do(p.customer, "GET", path, nil)
	s.do(p.customer, "GET", path+"/messages", nil)
	s.do(p.customer, "POST", path+"/read", nil)
	s.do(p.advisor, "POST", path+"/participants", map[string]any{"participants": []string{fourth.UserID}})
	s.do(p.advisor, "DELETE", path+"/participants/"+third.UserID, nil)
	s.expect(third, "GET", path, nil, 403, "common.rbac_no_rec_access")
}

// tasks creates a task and assigns it to the customer.
func (s *scenario) tasks(p people, customer string) {
	tasks := "/v1/customers/" + customer + "/tasks"
	task := tasks + "/" + s.id(p.advisor, tasks, map[string]any{"title": "Sign <the contract>", "category": "sign", "weight": 3, "due_on": "2026-02-10"})
	s.do(p.advisor, "GET", task, nil)
	s.do(p.advisor, "GET", tasks, nil)
	s.do(p.advisor, "PUT", task, map[string]any{"title": "Sign the contract", "category": "sign", "is_urgent": true})
	var assigned struct {
		ID        string
		Assignees []struct{ ID string }
	}
	s.do(p.advisor, "POST", task+"/assignees", map[string]any{"user_id": p.advisor.UserID, "weight": 1}).Into(s, &assigned)
	own := assigned.ID
	if n := len(assigned.Assignees); n > 0 {
		own = assigned.Assignees[n-1].ID
	}
	s.do(p.advisor, "DELETE", task+"/assignees/"+own, nil)
	s.do(p.advisor, "POST", task+"/assignees", map[string]any{"user_id": p.customer.UserID, "weight": 2}).Into(s, &assigned)
	theirs := assigned.ID
	if n := len(assigned.Assignees); n > 0 {
		theirs = assigned.Assignees[n-1].ID
	}
	s.file(p.customer, task+"/files")
	s.do(p.advisor, "GET", task+"/files", nil)
	s.do(p.customer, "GET", "/v1/tasks", nil)
	s.do(p.advisor, "GET", "/v1/tasks?scope=all&overdue=true&assignee_id="+p.customer.UserID, nil)
	s.do(p.advisor, "PATCH", task+"/status", map[string]any{"status": "in_progress"})
	s.do(p.customer, "PATCH", task+"/assignees/"+theirs, map[string]any{"task_completed": true})
	s.do(p.advisor, "DELETE", task, nil)
}

// profile sets the customer's avatar, preferences and views.
func (s *scenario) profile(p people) {
	s.do(p.customer, "GET", "/v1/profile", nil)
	s.do(p.customer, "GET", "/v1/profile/preferences", nil)
	var view struct{ ID string }
	s.do(p.customer, "PUT", "/v1/profile/views", map[string]any{"list": "/customers", "name": "In <review>", "query": "kyc_status=in_review"}).Into(s, &view)
	s.do(p.customer, "GET", "/v1/profile/views?search.list=/customers", nil)
	s.do(p.customer, "DELETE", "/v1/profile/views/"+view.ID, nil)
	s.do(p.customer, "PUT", "/v1/profile/preferences", map[string]any{"theme": "dark", "number_format": "1'234.56"})
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "me.png")
	if err == nil {
		err = png.Encode(file, image.NewGray(image.Rect(0, 0, 200, 100)))
	}
	if err != nil {
		s.Fatal(err)
	}
	w.Close()
	var avatar struct{ URL string }
	s.do(p.customer.With("Content-Type", w.FormDataContentType()), "POST", "/v1/profile/avatar", form.Bytes()).Into(s, &avatar)
	_, path, found := strings.Cut(avatar.URL, "/v1/")
	if !found {
		s.Fatalf("the address of the avatar is %q", avatar.URL)
	}
	s.do(s.server.Anonymous(), "GET", "/v1/"+path, nil)
	s.do(p.customer, "DELETE", "/v1/profile/avatar", nil)
}

// invoices reads a QR-bill.
func (s *scenario) invoices() {
	file, err := os.ReadFile("../../testdata/qr/files/formats-b57-06.png")
	if err != nil {
		s.Fatal(err)
	}
	var read struct {
		BillID string `json:"bill_id"`
	}
	s.do(s.admin, "POST", "/v1/invoices/qrcode", map[string]any{"base64_file": base64.StdEncoding.EncodeToString(file), "options": map[string]any{"keep": true}}).Into(s, &read)
	s.do(s.admin, "GET", "/v1/invoices/bills", nil)
	s.do(s.admin, "DELETE", "/v1/invoices/bills/"+read.BillID, nil)
}

// notifications triggers notifications, reads and deletes them, and retries a dead delivery.
func (s *scenario) notifications(p people, customer string) {
	s.do(s.server.Keyed(), "POST", "/v1/notifications/trigger", map[string]any{"event": "customer_status_changed", "content": "hello <you>",
		"rec_type": "customers", "rec_id": customer, "user_ids": []string{p.customer.UserID}})
	s.stream(p.customer, "GET", "open")
	s.stream(p.customer, "POST", "open")
	var page struct{ Data []struct{ ID string } }
	s.do(p.customer, "GET", "/v1/notifications?sort=-created_at", nil).Into(s, &page)
	if len(page.Data) == 0 {
		s.Fatal("the customer has no notification")
	}
	s.do(p.customer, "GET", "/v1/notifications/unread-count", nil)
	s.do(p.customer, "GET", "/v1/notifications/"+page.Data[0].ID, nil)
	s.do(p.customer, "PATCH", "/v1/notifications/"+page.Data[0].ID+"/read", map[string]any{"read": true})
	s.do(p.customer, "POST", "/v1/notifications/read", map[string]any{"rec_type": "customers", "rec_id": customer})
	s.do(p.customer, "POST", "/v1/notifications/read-all", nil)
	s.do(p.customer, "GET", "/v1/notifications/preferences", nil)
	s.do(p.customer, "PUT", "/v1/notifications/preferences", map[string]any{})
	var triggered struct {
		NotificationID string `json:"notification_id"`
	}
	s.do(s.server.Keyed(), "POST", "/v1/notifications/trigger", map[string]any{"user_ids": []string{p.customer.UserID}}).Into(s, &triggered)
	s.do(p.advisor, "DELETE", "/v1/notifications/"+triggered.NotificationID, nil)
	s.expect(p.customer, "DELETE", "/v1/notifications/"+page.Data[0].ID, nil, 500, "common.database_error")
	s.do(p.customer, "POST", "/v1/notifications/"+page.Data[0].ID+"/hide", nil)

	var deliveries struct{ Data []struct{ ID string } }
	s.do(s.admin, "GET", "/v1/notifications/deliveries?limit=1", nil).Into(s, &deliveries)
	dead := deliveries.Data[0].ID
	err := s.server.DB.InTx(s.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(s.Context(), `UPDATE deliveries SET status = 'dead', sent_at = NULL WHERE id = $1`, dead)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	s.do(s.admin, "POST", "/v1/notifications/deliveries/"+dead+"/retry", nil)
}
