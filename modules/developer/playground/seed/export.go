package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kontor/server/apierr"
)

// exportedPassword is the one of all users in an exported file: passwords cannot be read.
const exportedPassword = "four quiet words at night"

const exportHead = `# The state of a sandbox at %s, as far as the API can make it. All users get the password below.
# Not in the file: times, passwords and second factors, files, links between people, messages to users, the audit trail, and
# whatever was deleted or has expired.
`

// Export returns the present state as a seed file. It reads the lists of the API as the first administrator, so that the file has what
// the API shows, and takes the members of each body from the API document.
func (s *Service) Export(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	if !s.Busy.TryLock() {
		return nil, apierr.SandboxBusy
	}
	defer s.Busy.Unlock()
	d, err := s.openSender(&ids{random: true})
	if err != nil {
		return nil, err
	}
	defer d.close()
	if d.caller, err = s.caller(ctx); err != nil {
		return nil, err
	}
	e := &exporter{sender: d, refs: map[string]string{}, steps: map[string]int{}, users: map[string]exportedUser{}}
	if err := d.get(ctx, "/openapi.json", nil, &e.document); err != nil {
		return nil, err
	}
	e.add(exportedStep{ID: "me", Request: "GET /v1/users/me"}, d.caller)
	for _, part := range []func(context.Context) error{e.roles, e.people, e.services, e.personas, e.customers, e.payers, e.tasks, e.chats, e.grants} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	var file bytes.Buffer
	fmt.Fprintf(&file, exportHead, s.DB.Now())
	encoder := yaml.NewEncoder(&file)
	encoder.SetIndent(2)
	err = encoder.Encode(exportedFile{Values: map[string]string{"password": exportedPassword}, Steps: e.all})
	if err == nil {
		_, err = Parse(file.Bytes()) // such as for too many steps
	}
	return file.Bytes(), Wrong(err)
}

// exportedFile is a file as it is written.
type exportedFile struct {
	Values map[string]string `yaml:"values"`
	Steps  []exportedStep    `yaml:"steps"`
}

type exportedStep struct {
	ID      string            `yaml:"id"`
	As      string            `yaml:"as,omitempty"`
	Request string            `yaml:"request"`
	Query   map[string]any    `yaml:"query,omitempty,flow"`
	Body    map[string]any    `yaml:"body,omitempty"`
	Match   map[string]string `yaml:"match,omitempty"`
}

// row is a record of a list.
type row map[string]any

func (r row) text(name string) string {
	text, _ := r[name].(string)
	return text
}

// texts returns the texts of an array.
func (r row) texts(name string) (all []string) {
	entries, _ := r[name].([]any)
	for _, entry := range entries {
		if text, ok := entry.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// The names of the built-in roles.
const roleAdministrator, roleAdvisor, roleCustomer, roleRegistrant = "Administrator", "Advisor", "Customer", "Registrant"

// exportedUser is a user whom the file makes.
type exportedUser struct {
	step  string
	roles []string
}

// isClient reports whether a user is a customer of the bank, who makes their own records.
func (u exportedUser) isClient() bool {
	return u.step != "" && !slices.ContainsFunc(u.roles, func(name string) bool { return name != roleCustomer && name != roleRegistrant })
}

// decides reports whether a user may verify customers.
func (u exportedUser) decides() bool {
	return u.step != "" && (slices.Contains(u.roles, roleAdvisor) || slices.Contains(u.roles, roleAdministrator))
}

// exporter collects the steps.
type exporter struct {
	*sender
	document map[string]any
	all      []exportedStep
	steps    map[string]int    // how many steps have a name with this beginning
	refs     map[string]string // what stands for an id in the file
	users    map[string]exportedUser
	order    []string // the ids of the users
}

// add adds a step that makes the record with an id.
func (e *exporter) add(step exportedStep, id string) {
	e.all = append(e.all, step)
	if id != "" {
		e.refs[id] = "${" + step.ID + ".id}"
	}
}

// name returns the id of the next step of a kind.
func (e *exporter) name(kind string) string {
	e.steps[kind]++
	return kind + strconv.Itoa(e.steps[kind])
}

// create adds a step that makes a record by POST to a path of the document. shown is the path as the file has it.
func (e *exporter) create(kind, as, path, shown string, record row) {
	body, _ := e.fit(map[string]any(record), e.schema(http.MethodPost, path)).(map[string]any)
	e.add(exportedStep{ID: e.name(kind), As: as, Request: http.MethodPost + " " + shown, Body: body}, record.text("id"))
}

// schema returns the schema of the body of an endpoint.
func (e *exporter) schema(method, path string) map[string]any {
	value, _ := member(e.document, []string{"paths", path, strings.ToLower(method), "requestBody", "content", "application/json", "schema"})
	found, _ := value.(map[string]any)
	return found
}

// resolve follows the reference of a schema.
func (e *exporter) resolve(schema map[string]any) map[string]any {
	name, ok := schema["$ref"].(string)
	if !ok {
		return schema
	}
	value, _ := member(e.document, strings.Split(strings.TrimPrefix(name, "#/"), "/"))
	found, _ := value.(map[string]any)
	return found
}

// fit returns what a schema admits of a value, with references in place of ids. It leaves out empty values and ids of records that the
// file does not make.
func (e *exporter) fit(value any, schema map[string]any) any {
	schema = e.resolve(schema)
	switch v := value.(type) {
	case map[string]any:
		properties, closed := schema["properties"].(map[string]any)
		found := map[string]any{}
		for name, one := range v {
			inner, known := properties[name].(map[string]any)
			if closed && !known {
				continue
			}
			if fitted := e.fit(one, inner); fitted != nil {
				found[name] = fitted
			}
		}
		if len(found) > 0 {
			return found
		}
		return nil
	case []any:
		items, _ := schema["items"].(map[string]any)
		var found []any
		for _, one := range v {
			if fitted := e.fit(one, items); fitted != nil {
				found = append(found, fitted)
			}
		}
		if len(found) > 0 {
			return found
		}
		return nil
	case string:
		ref, known := e.refs[v]
		switch {
		case known:
			return ref
		case v == "" || schema["format"] == "uuid":
			return nil
		}
		return literal(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return value
}

// literal returns a text without references.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

const exportPage = 100

// each calls use with the records of a list, oldest first.
func (e *exporter) each(ctx context.Context, path string, query url.Values, use func(row) error) error {
	for offset := 0; ; offset += exportPage {
		page := url.Values{"limit": {strconv.Itoa(exportPage)}, "offset": {strconv.Itoa(offset)}, "sort": {"id"}}
		maps.Copy(page, query)
		var answer struct {
			Data   []row
			Payers []row
			People map[string]row
		}
		if err := e.get(ctx, path, page, &answer); err != nil {
			return err
		}
		rows := append(answer.Data, answer.Payers...)
		for _, record := range rows {
			if person := answer.People[record.text("id")]; person != nil {
				record["user_name"] = person["user_name"]
			}
			if err := use(record); err != nil {
				return err
			}
		}
		if len(rows) < exportPage {
			return nil
		}
	}
}

// records returns a function that adds a step for each record of a list.
func (e *exporter) records(ctx context.Context, kind, path string) error {
	return e.each(ctx, path, nil, func(record row) error {
		e.create(kind, "", path, path, record)
		return nil
	})
}

func (e *exporter) roles(ctx context.Context) error {
	return e.each(ctx, "/v1/rbac/roles", nil, func(record row) error {
		if record["built_in"] == true {
			e.refs[record.text("id")] = record.text("id") // the same in every bank
			return nil
		}
		e.create("role", "", "/v1/rbac/roles", "/v1/rbac/roles", record)
		return nil
	})
}

// people adds the active users with an e-mail address: each accepts an invitation.
func (e *exporter) people(ctx context.Context) error {
	return e.each(ctx, "/v1/users", nil, func(record row) error {
		id, login := record.text("id"), record.text("user_name")
		if id == e.caller || record.text("kind") != "person" || record.text("status") != "active" || !strings.Contains(login, "@") {
			return nil
		}
		record["email"] = login
		name := e.name("user")
		body, _ := e.fit(map[string]any(record), e.schema(http.MethodPost, "/v1/invitations")).(map[string]any)
		e.add(exportedStep{ID: name + "_invitation", Request: "POST /v1/invitations", Body: body}, "")
		e.add(exportedStep{ID: name + "_message", Request: "GET /v1/notifications/deliveries", Query: map[string]any{"limit": 1, "search.to": literal(login)},
			Match: map[string]string{"token": "/invitation#([A-Za-z0-9._-]+)"}}, "")
		e.add(exportedStep{ID: name, As: Anonymous, Request: "POST /v1/invitations/accept", Body: map[string]any{"token": "${" + name + "_message.token}", "password": "${password}"}}, "")
		e.refs[id] = "${" + name + ".user_id}"
		e.users[id], e.order = exportedUser{name, record.texts("roles")}, append(e.order, id)
		return nil
	})
}

func (e *exporter) services(ctx context.Context) error {
	if err := e.records(ctx, "service", "/v1/service-accounts"); err != nil {
		return err
	}
	return e.records(ctx, "webhook", "/v1/webhooks")
}

func (e *exporter) personas(ctx context.Context) error {
	return e.records(ctx, "persona", "/v1/personas")
}

// customers adds the customers with their documents and the state of their verification. Customers of the bank make their own
// record; the administrator makes the others, so that an advisor may verify them.
func (e *exporter) customers(ctx context.Context) error {
	creators := map[string]string{}
	err := e.each(ctx, "/v1/audit", url.Values{"sort": {"seq"}, "search.action": {"customers.create"}}, func(entry row) error {
		creators[entry.text("rec_id")] = entry.text("actor")
		return nil
	})
	if err != nil {
		return err
	}
	const path = "/v1/customers"
	return e.each(ctx, path, nil, func(record row) error {
		if record.text("last_name") == "" || record.text("email") == "" {
			return nil // erased
		}
		as := ""
		if creator := e.users[creators[record.text("id")]]; creator.isClient() {
			as = creator.step
		}
		e.create("customer", as, path, path, record)
		if record.text("kyc_status") == "not_started" {
			return nil
		}
		return e.verification(ctx, path+"/"+record.text("id")+"/kyc", path+"/"+e.refs[record.text("id")]+"/kyc", as)
	})
}

// verification adds the documents of a customer that have not expired, and the latest decision about them.
func (e *exporter) verification(ctx context.Context, path, shown, as string) error {
	var kyc struct {
		Status    string `json:"kyc_status"`
		Documents []any
		History   []struct {
			To, Reason string
			By         string `json:"changed_by"`
		}
	}
	if err := e.get(ctx, path, nil, &kyc); err != nil {
		return err
	}
	valid := slices.DeleteFunc(slices.Clone(kyc.Documents), func(one any) bool {
		document, _ := one.(map[string]any)
		return document["expired"] == true
	})
	if len(valid) == 0 {
		return nil
	}
	body, _ := e.fit(map[string]any{"documents": valid}, e.schema(http.MethodPut, "/v1/customers/{id}/kyc")).(map[string]any)
	e.add(exportedStep{ID: e.name("documents"), As: as, Request: http.MethodPut + " " + shown, Body: body}, "")
	if len(valid) < len(kyc.Documents) || len(kyc.History) == 0 {
		return nil
	}
	decider := e.users[kyc.History[0].By]
	for _, id := range e.order {
		if !decider.decides() {
			decider = e.users[id]
		}
	}
	way := map[string][]string{"in_review": {"in_review"}, "verified": {"in_review", "verified"}, "rejected": {"in_review", "rejected"}}[kyc.Status]
	for _, to := range way {
		if !decider.decides() {
			break
		}
		change := map[string]any{"kyc_status": to}
		if to == kyc.Status && kyc.History[0].To == to && kyc.History[0].Reason != "" {
			change["reason"] = literal(kyc.History[0].Reason)
		}
		e.add(exportedStep{ID: e.name("decision"), As: decider.step, Request: http.MethodPatch + " " + shown + "/status", Body: change}, "")
	}
	return nil
}

// payers adds the active payers of customers. Their list begins with the newest one, and has no other order.
func (e *exporter) payers(ctx context.Context) error {
	var found []row
	err := e.each(ctx, "/v1/payers", url.Values{"sort": nil}, func(record row) error {
		if e.refs[record.text("customer_id")] != "" && record["active"] == true {
			found = append(found, record)
		}
		return nil
	})
	for _, record := range slices.Backward(found) {
		e.create("payer", "", "/v1/payers", "/v1/payers", record)
	}
	return err
}

func (e *exporter) tasks(ctx context.Context) error {
	return e.each(ctx, "/v1/tasks", url.Values{"scope": {"all"}}, func(record row) error {
		customer := e.refs[record.text("customer_id")]
		if customer == "" {
			return nil
		}
		delete(record, "metadata") // the log of the task
		e.create("task", "", "/v1/customers/{customer_id}/tasks", "/v1/customers/"+customer+"/tasks", record)
		return nil
	})
}

// chats adds the chats between users of the file, with their texts.
func (e *exporter) chats(ctx context.Context) error {
	readers, all := map[string]string{}, []row{} // readers by chat
	for _, reader := range append([]string{e.caller}, e.order...) {
		var found []row
		err := e.getAs(ctx, reader, "/v1/chats", url.Values{"limit": {strconv.Itoa(exportPage)}}, &found)
		if errors.Is(err, apierr.NoAccess) {
			continue // a user without the right to chats
		}
		if err != nil {
			return err
		}
		for _, chat := range found {
			unknown := slices.ContainsFunc(chat.texts("participants"), func(id string) bool { return e.refs[id] == "" })
			if id := chat.text("id"); readers[id] == "" && !unknown && len(chat.texts("participants")) > 1 {
				readers[id], all = reader, append(all, chat)
			}
		}
	}
	slices.SortFunc(all, func(a, b row) int { return strings.Compare(a.text("id"), b.text("id")) }) // the oldest one first
	for _, chat := range all {
		people := chat.texts("participants")
		// Staff may begin a chat with anybody, customers only some.
		founder := max(0, slices.IndexFunc(people, func(id string) bool { return !e.users[id].isClient() }))
		all, _ := chat["participants"].([]any)
		chat["participants"] = slices.Delete(slices.Clone(all), founder, founder+1)
		e.create("chat", e.users[people[founder]].step, "/v1/chats", "/v1/chats", chat)
		if err := e.messages(ctx, readers[chat.text("id")], chat.text("id")); err != nil {
			return err
		}
	}
	return nil
}

// messages adds the latest texts of a chat.
func (e *exporter) messages(ctx context.Context, reader, chat string) error {
	var found []row
	if err := e.getAs(ctx, reader, "/v1/chats/"+chat+"/messages", url.Values{"limit": {strconv.Itoa(exportPage)}}, &found); err != nil {
		return err
	}
	for _, message := range slices.Backward(found) {
		sender := message.text("senderId")
		if e.refs[sender] == "" || message.text("type") != "text" || message.text("content") == "" {
			continue
		}
		e.add(exportedStep{ID: e.name("message"), As: e.users[sender].step, Request: "POST /v1/chats/" + e.refs[chat] + "/messages",
			Body: map[string]any{"content": literal(message.text("content"))}}, "")
	}
	return nil
}

// grants adds those of roles that the file makes, those of users, and those on single records.
func (e *exporter) grants(ctx context.Context) error {
	const path = "/v1/rbac/grants"
	return e.each(ctx, path, nil, func(record row) error {
		role, user, target := record.text("role_id"), record.text("user_id"), record.text("rec_id")
		own := role != "" && e.refs[role] != "" && e.refs[role] != role
		holder := own || user != "" && e.refs[user] != "" || target != "" && e.refs[role] != ""
		if !holder || target != "" && e.refs[target] == "" {
			return nil
		}
		delete(record, "starts_at") // it has begun, or is made early
		e.create("grant", "", path, path, record)
		return nil
	})
}
