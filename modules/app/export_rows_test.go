package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// exportWorld is a customer with data that they may read, and with data about them that only staff may read.
type exportWorld struct {
	*servertest.Server
	owner, advisor              *servertest.Client
	customer, persona, chat     string
	staffOnly, own              []string // texts
	eventID                     string
	codes                       []string
	reviewer, auditor, stranger *servertest.Client
}

func newExportWorld(t *testing.T) *exportWorld {
	t.Helper()
	w := &exportWorld{Server: servertest.Start(t)}
	admin := w.Admin()
	w.owner, w.advisor, w.stranger = w.User(access.Customer), w.User(access.Advisor), w.User(access.Customer)
	mine := func(text string) string { w.own = append(w.own, text); return text }
	staff := func(text string) string { w.staffOnly = append(w.staffOnly, text); return text }
	w.customer = w.owner.Create("/v1/customers", map[string]any{"first_name": mine("OwnFirst"), "last_name": mine("OwnLast"), "email": "own@example.ch",
		"date_of_birth": "1971-03-04", "nationality": "CHE", "address": map[string]any{"city": "Zürich", "country": "CH"}})
	customer := "/v1/customers/" + w.customer
	w.owner.Do("PUT", customer+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": mine("OWNPASS1"), "expiry_date": "2099-01-01", "country": "CHE"},
		{"type": "proof_of_address", "number": mine("OWNADDR1"), "expiry_date": "2099-01-01", "country": "CHE"}}}).Expect(t, 200)
	var kyc struct{ Documents []struct{ ID string } }
	w.owner.Do("GET", customer+"/kyc", nil).Expect(t, 200).Into(t, &kyc)
	upload := func(c *servertest.Client, path, name string) {
		c.With("Content-Type", "application/octet-stream", "Content-Disposition", fmt.Sprintf("attachment; filename=%q", name)).
			Do("POST", path, smallPDF()).Expect(t, 201)
	}
	upload(w.owner, customer+"/kyc/documents/"+kyc.Documents[0].ID+"/files", mine("OwnPassport.pdf"))
	w.owner.Create("/v1/payers", map[string]any{"customer_id": w.customer, "name": mine("OwnPayer")})
	w.advisor.Create("/v1/payers", map[string]any{"customer_id": w.customer, "name": staff("StaffPayer")})
	given := w.advisor.Create(customer+"/tasks", map[string]any{"title": mine("OwnTask"), "category": "sign",
		"assignees": []map[string]any{{"user_id": w.owner.UserID}}})
	upload(w.advisor, customer+"/tasks/"+given+"/files", mine("OwnTaskFile.pdf"))
	hidden := w.advisor.Create(customer+"/tasks", map[string]any{"title": staff("StaffTask"), "category": "sign", "description": staff("Report the client")})
	upload(w.advisor, customer+"/tasks/"+hidden+"/files", staff("StaffEvidence.pdf"))
	w.advisor.Do("PATCH", customer+"/kyc/status", map[string]any{"kyc_status": "in_review"}).Expect(t, 200)
	w.advisor.Do("PATCH", customer+"/kyc/status", map[string]any{"kyc_status": "verified", "verification_level": "enhanced",
		"reason": staff("PEP hit, report filed, do not tell the client")}).Expect(t, 202)
	w.advisor.Do("POST", customer+"/notify", map[string]any{"text": mine("OwnNotice"), "user_ids": []string{w.owner.UserID}}).Expect(t, 200)
	admin.Do("POST", customer+"/notify", map[string]any{"text": staff("StaffNotice"), "user_ids": []string{w.advisor.UserID}}).Expect(t, 200)
	admin.Do("PUT", customer+"/legal-hold", map[string]any{"reason": staff("Inquiry of the prosecutor")}).Expect(t, 200)

	w.chat = w.owner.Create("/v1/chats", map[string]any{"participants": []string{w.advisor.UserID}})
	message := w.owner.Create("/v1/chats/"+w.chat+"/messages", map[string]any{"content": mine("OwnMessage")})
	upload(w.owner, "/v1/chats/"+w.chat+"/messages/"+message+"/files", mine("OwnChatFile.pdf"))
	w.advisor.Create("/v1/chats/"+w.chat+"/messages", map[string]any{"content": "From the advisor"})
	w.owner.Do("PUT", "/v1/profile/views", map[string]any{"list": "/tasks", "name": mine("OwnView"), "query": "q=a"}).Expect(t, 200)
	admin.Do("POST", "/v1/users/"+w.owner.UserID+"/credentials", map[string]any{"credential_type": "email", "credential_value": mine("second@example.ch")}).Expect(t, 201)
	w.persona = admin.Create("/v1/personas", map[string]any{"first_name": "Ada", "last_name": "Former", "date_of_birth": "1980-02-03"})
	admin.Do("PUT", "/v1/personas/"+w.persona, map[string]any{"first_name": "Ada", "last_name": "Present", "date_of_birth": "1980-02-03"}).Expect(t, 200)
	admin.Do("POST", "/v1/personas/"+w.persona+"/users", map[string]any{"user_id": w.owner.UserID}).Expect(t, 201)
	spouse := admin.Create("/v1/personas", map[string]any{"first_name": "Bea", "last_name": "Spouse", "date_of_birth": "1981-02-03"})
	admin.Do("POST", "/v1/personas/"+w.persona+"/links", map[string]any{"linked_persona_id": spouse, "relation": "spouse"}).Expect(t, 201)
	w.eventID = w.Keyed().Do("POST", "/v1/notifications/trigger", map[string]any{"event": "x", "title_key": "t", "customer_id": w.customer,
		"user_ids": []string{w.owner.UserID, w.advisor.UserID}}).Expect(t, 200).JSON(t)["notification_id"].(string)

	for _, d := range rowsOf(t, admin.Do("GET", "/v1/notifications/deliveries?limit=100&search.to=second@example.ch", nil)) {
		w.codes = append(w.codes, regexp.MustCompile(`\b\d{6}\b`).FindAllString(d["text"].(string), -1)...)
	}
	if len(w.codes) == 0 {
		t.Fatal("there is no live code")
	}
	w.reviewer = w.withRole(t, "Reviewer", map[string][]string{"customers": {"read", "update"}},
		"GET /v1/customers/{id}", "GET /v1/customers/{id}/kyc", "GET /v1/customers/{id}/export", "GET /v1/kyc/cases")
	all := map[string][]string{}
	for _, name := range []string{"customers", "payers", "tasks", "users", "credentials", "sessions", "notifications", "personas", "chats", "deliveries", "factors", "identities"} {
		all[name] = []string{"read_all"}
	}
	var reads []string
	for _, e := range w.Table() {
		if e.Method == "GET" && e.Access.TakesBearer() && !strings.HasSuffix(e.Path, "/report") {
			reads = append(reads, e.Key())
		}
	}
	w.auditor = w.withRole(t, "Auditor", all, reads...)
	return w
}

// withRole returns a user with a role of their own.
func (w *exportWorld) withRole(t *testing.T, name string, types map[string][]string, endpoints ...string) *servertest.Client {
	t.Helper()
	role := w.Admin().Create("/v1/rbac/roles", map[string]any{"name": name})
	for recType, permissions := range types {
		w.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"role_id": role, "rec_type": recType, "permissions": permissions}).Expect(t, 201)
	}
	for _, key := range endpoints {
		w.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"role_id": role, "endpoint": key}).Expect(t, 201)
	}
	return w.User(role)
}

func (w *exportWorld) checkNoCodes(t *testing.T, what, text string) {
	t.Helper()
	for _, code := range w.codes {
		if strings.Contains(text, code) {
			t.Errorf("%s: a live code %s", what, code)
		}
	}
	if strings.Contains(text, w.eventID) {
		t.Errorf("%s: the id of an event", what)
	}
}

// smallPDF returns a file that is accepted as evidence.
func smallPDF() []byte { return filledPDF(0) }

// filledPDF returns a file that is accepted as evidence, with an object of some size.
func filledPDF(size int) []byte {
	var b strings.Builder
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	b.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
	object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] >>")
	if size > 0 {
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", size, strings.Repeat("q", size)))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return []byte(b.String())
}

type object = map[string]any

// rowsOf returns the rows of a list, or of the array with a name in an answer; none without access.
func rowsOf(t *testing.T, r servertest.Response, name ...string) []object {
	t.Helper()
	if r.Status == 403 || r.Status == 404 {
		return nil
	}
	data := r.Expect(t, 200).JSON(t)["data"]
	if len(name) > 0 {
		data = r.JSON(t)[name[0]]
	}
	var rows []object
	encoded, err := json.Marshal(data)
	if err == nil && string(encoded) != "null" {
		err = json.Unmarshal(encoded, &rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// has reports whether one of the rows has the members of an element of an export, or nearly so.
func has(rows []object, element object) bool {
	for _, row := range rows {
		same := true
		for name, value := range element {
			shown, known := row[name]
			if name != "readBy" && (!known || !reflect.DeepEqual(shown, value)) {
				same = false
			}
		}
		if same {
			return true
		}
	}
	return false
}

// answered returns the rows that an endpoint shows a reader in place of an element of a section.
func (w *exportWorld) answered(t *testing.T, c *servertest.Client, kind, id, section string, e object) []object {
	t.Helper()
	get := func(format string, args ...any) servertest.Response {
		return c.Do("GET", fmt.Sprintf(format, args...), nil)
	}
	one := func(r servertest.Response) []object {
		if r.Status == 403 || r.Status == 404 {
			return nil
		}
		return []object{r.Expect(t, 200).JSON(t)}
	}
	text := func(name string) string { s, _ := e[name].(string); return s }
	user, persona := "/v1/users/"+id, "/v1/personas/"+id
	switch kind + "." + section {
	case "customer.customer":
		return one(get("/v1/customers/%s", id))
	case "customer.relationship":
		return one(get("/v1/customers/%s/relationship", id))
	case "customer.documents":
		return rowsOf(t, get("/v1/customers/%s/kyc", id), "documents")
	case "customer.verification_history":
		return rowsOf(t, get("/v1/customers/%s/kyc", id), "history")
	case "customer.decisions":
		kyc := get("/v1/customers/%s/kyc", id)
		rows := rowsOf(t, kyc, "decisions")
		if pending, ok := kyc.JSON(t)["pending_decision"].(object); ok {
			rows = append(rows, pending)
		}
		return rows
	case "customer.case":
		return rowsOf(t, get("/v1/kyc/cases?search.customer_id=%s", id))
	case "customer.payers":
		return one(get("/v1/payers/%s", text("id")))
	case "customer.tasks", "user.tasks":
		return one(get("/v1/customers/%s/tasks/%s", text("customer_id"), text("id")))
	case "customer.files", "user.files":
		return one(get("/v1/files/%s", text("id")))
	case "customer.file_contents", "user.file_contents":
		content := get("/v1/files/%s/content", text("file_id"))
		if content.Status != 200 {
			return nil
		}
		return []object{{"file_id": text("file_id"), "number": 0.0, "content": base64.StdEncoding.EncodeToString([]byte(content.Body))}}
	case "customer.notifications", "user.notifications":
		return rowsOf(t, get("/v1/notifications?limit=100&search.id=%s", text("id")))
	case "user.user":
		return one(get("%s", user))
	case "user.credentials", "user.sessions", "user.factors", "user.identities":
		return rowsOf(t, get("%s/%s?limit=100", user, section))
	case "user.preferences":
		return one(get("/v1/profile/preferences"))
	case "user.views":
		return rowsOf(t, get("/v1/profile/views?limit=100"))
	case "user.bills":
		return rowsOf(t, get("/v1/invoices/bills?limit=100"))
	case "user.imports":
		return rowsOf(t, get("/v1/imports?limit=100"))
	case "user.chats_created":
		return one(get("/v1/chats/%s", text("id")))
	case "user.messages":
		var messages []object
		if r := get("/v1/chats/%s/messages?limit=100", text("chatId")); r.Status == 200 {
			r.Into(t, &messages)
		}
		return messages
	case "user.personas":
		if c.UserID == id {
			return rowsOf(t, get("/v1/profile/personas?limit=100"))
		}
		return rowsOf(t, get("/v1/personas/%s/users?limit=100", text("persona_id")))
	case "user.devices", "user.deliveries", "user.former_identities":
		if c.UserID == id {
			return []object{e}
		}
		return nil
	case "persona.persona":
		return one(get("%s", persona))
	case "persona.users", "persona.links":
		return rowsOf(t, get("%s/%s?limit=100", persona, section))
	case "persona.former_names":
		if get("%s", persona).Status == 200 {
			return []object{e}
		}
		return nil
	}
	t.Errorf("%s.%s: compare it with its endpoint", kind, section)
	return []object{e}
}

// An export shows its reader nothing that the reader could not read one by one.
func TestExport_IsWhatItsReaderCouldReadOneByOne(t *testing.T) {
	w := newExportWorld(t)
	readers := map[string]*servertest.Client{"owner": w.owner, "stranger": w.stranger, "advisor": w.advisor, "reviewer": w.reviewer, "auditor": w.auditor, "administrator": w.Admin()}
	may := map[string]string{"owner": "customer user", "advisor": "customer persona", "reviewer": "customer", "administrator": "customer user persona"}
	for name, c := range readers {
		for kind, id := range map[string]string{"customer": w.customer, "user": w.owner.UserID, "persona": w.persona} {
			got := c.Do("GET", "/v1/"+kind+"s/"+id+"/export", nil)
			if allowed := strings.Contains(may[name], kind); allowed != (got.Status == 200) {
				t.Errorf("%s exports the %s: %d", name, kind, got.Status)
			}
			if got.Status != 200 {
				continue
			}
			w.checkNoCodes(t, name+" and the "+kind, got.Body)
			var sections map[string]json.RawMessage
			if err := json.Unmarshal([]byte(got.Body), &sections); err != nil {
				t.Fatalf("%s and the %s: %v", name, kind, err)
			}
			for section, raw := range sections {
				if section == "kind" || section == "id" || section == "exported_at" {
					continue
				}
				var elements []object
				if err := json.Unmarshal(raw, &elements); err != nil {
					t.Fatal(err)
				}
				for _, e := range elements {
					if rows := w.answered(t, c, kind, id, section, e); !has(rows, e) {
						t.Errorf("%s exports of the %s in %s what no endpoint shows them: %v, but %v", name, kind, section, e, rows)
					}
				}
			}
		}
	}
	own := w.owner.Do("GET", "/v1/customers/"+w.customer+"/export", nil).Body + w.owner.Do("GET", "/v1/users/"+w.owner.UserID+"/export", nil).Body
	for _, text := range w.own {
		if !strings.Contains(own, text) {
			t.Errorf("the owner's exports lack %s", text)
		}
	}
	for _, text := range w.staffOnly {
		if strings.Contains(own, text) {
			t.Errorf("the owner's exports have %s", text)
		}
	}
	// The export has all that the reader gets one by one.
	reviewed := w.reviewer.Do("GET", "/v1/customers/"+w.customer+"/export", nil).Body
	if !strings.Contains(reviewed, "PEP hit") || !strings.Contains(reviewed, "OWNPASS1") || strings.Contains(reviewed, "OwnPayer") || strings.Contains(reviewed, "StaffEvidence") {
		t.Errorf("the reviewer exports %s", reviewed)
	}
	all := w.Admin().Do("GET", "/v1/customers/"+w.customer+"/export", nil).Body
	for name, c := range map[string]*servertest.Client{"advisor": w.advisor, "administrator": w.Admin(), "owner": w.owner} {
		if got := strings.Contains(c.Do("GET", "/v1/customers/"+w.customer+"/export", nil).Body, `"case":[`); got != (name != "owner") {
			t.Errorf("%s exports the open case: %t", name, got)
		}
	}
	for _, text := range []string{"StaffPayer", "StaffTask", "StaffEvidence", "PEP hit", "StaffNotice"} {
		if !strings.Contains(all, text) {
			t.Errorf("the administrator's export lacks %s", text)
		}
	}
	if got := w.owner.Do("HEAD", "/v1/customers/"+w.customer+"/export", nil).Expect(t, 200); got.Body != "" {
		t.Errorf("HEAD has a body: %s", got.Body)
	}
}
