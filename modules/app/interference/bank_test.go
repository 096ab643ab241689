// Package interference_test proves that the data of one person does not decide about another: whatever a customer does, all others
// see and get the same as without it.
//
// Two banks play one history of requests of staff and customers. In one of them an attacker, who is a customer, sends requests between
// those of the others. The answers to the others are compared at each step, and at the end everything that they can read. A
// history is a list of steps with names in place of ids, so that it reads the same for both banks.
package interference_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// bank is a server with its people and the names of its records.
type bank struct {
	testing.TB
	server *servertest.Server
	people map[string]*servertest.Client
	ids    map[string]string // by name
	names  map[string]string // by id
	steps  int               // of the others
	opened bool
	stream *stream // of the victim
	mu     sync.Mutex
	end    []func()
}

// The people besides the administrator in the order of their creation, with their roles. Their addresses are user1@example.ch and so on.
var roles = []struct{ name, role string }{
	{"reviewer", access.Advisor}, {"second", access.Advisor}, {"victim", access.Customer}, {"bystander", access.Customer}, {"leaver", access.Customer},
	{attacker, access.Customer}, {accomplice, access.Customer},
}

const (
	admin      = "admin"
	attacker   = "attacker"
	accomplice = "accomplice" // a second account of the attacker
)

// emailOf returns the validated e-mail address of a person.
func emailOf(name string) string {
	for i, r := range roles {
		if r.name == name {
			return fmt.Sprintf("user%d@example.ch", i+1)
		}
	}
	return servertest.AdminEmail
}

// step is a request, or a job of the bank. <name> in the path and in the body stands for the id with this name.
type step struct {
	by, method, path string
	body             string
	media            string            // of the body; empty: JSON
	keep             map[string]string // names for members of the answer, such as "pending_decision.id"
	does             string            // describes job
	job              func(*bank)
}

func (s step) String() string {
	if s.does != "" {
		return s.does
	}
	if s.media != "" {
		return fmt.Sprintf("%s: %s %s with a file", s.by, s.method, s.path)
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", s.by, s.method, s.path, s.body))
}

// GoString is how rapid prints a step.
func (s step) GoString() string { return s.String() }

// isAttack reports whether the step is the attacker's.
func (s step) isAttack() bool { return s.by == attacker || s.by == accomplice }

// openBank starts a server and creates the people and their records.
func openBank(t testing.TB) *bank {
	t.Helper()
	b := &bank{TB: t, server: servertest.Start(t), people: map[string]*servertest.Client{}}
	b.ids, b.names = map[string]string{}, map[string]string{}
	b.people[admin] = b.server.Admin()
	for _, r := range roles {
		b.people[r.name] = b.server.User(r.role)
	}
	for name, c := range b.people {
		b.name(name+".user", c.UserID)
	}
	for _, s := range opening {
		if got := b.do(s); got.status >= http.StatusMultipleChoices {
			t.Fatalf("%s: got %d %s", s, got.status, got.body)
		}
	}
	b.opened = true
	b.stream = b.follow("victim")
	t.Cleanup(b.close)
	return b
}

func (b *bank) close() {
	b.stream.close()
	for _, end := range b.end {
		end()
	}
}

func (b *bank) name(name, id string) {
	b.ids[name], b.names[id] = id, name
}

var (
	named = regexp.MustCompile(`<([a-z0-9_.]+)>`)
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// fill replaces names by ids.
func (b *bank) fill(text string) string {
	return named.ReplaceAllStringFunc(text, func(found string) string {
		if id, known := b.ids[found[1:len(found)-1]]; known {
			return id
		}
		return "01a1fba6-a539-7476-8ef2-2ae6188b879c" // the step that makes it has failed, or is not part of the history
	})
}

// unfill replaces ids by names, and other ids by <?>.
func (b *bank) unfill(text string) string {
	return uuids.ReplaceAllStringFunc(text, func(id string) string {
		if name, known := b.names[id]; known {
			return "<" + name + ">"
		}
		return "<?>"
	})
}

type answer struct {
	status int
	body   string
}

// do makes a step. Time passes for it in both banks alike.
func (b *bank) do(s step) answer {
	b.Helper()
	if s.job != nil {
		s.job(b)
		return answer{}
	}
	got := b.send(s)
	if b.opened && s.isAttack() {
		b.nameAll(got.body, func(int) string { return attackName })
		return got
	}
	for name, member := range s.keep {
		if id := memberOf(got.body, member); id != "" {
			b.name(name, id)
		}
	}
	b.steps++
	b.nameAll(got.body, func(n int) string { return fmt.Sprintf("s%d.%d", b.steps, n) })
	return got
}

// attackName is the name of all records that the attacker has made.
const attackName = "attack"

// nameAll names the ids in an answer that have no name.
func (b *bank) nameAll(body string, name func(n int) string) {
	for n, id := range uuids.FindAllString(body, -1) {
		if _, known := b.names[id]; !known && id != store.NilID {
			b.name(name(n), id)
		}
	}
}

// send makes a request, without comparing its answer with the API document: attackers send anything.
func (b *bank) send(s step) answer {
	b.Helper()
	for {
		got, err := b.try(s)
		if err != nil {
			b.Fatalf("%s: %v", s, err)
		}
		if got.status != http.StatusAccepted || !strings.HasSuffix(s.path, "/erasure") { // the erasure is done in the background
			return got
		}
	}
}

func (b *bank) try(s step) (answer, error) {
	c := b.people[s.by]
	address := "http://" + b.server.Address + b.fill(s.path)
	request, err := http.NewRequestWithContext(b.Context(), s.method, address, strings.NewReader(b.fill(s.body)))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Content-Type", "application/json")
	if s.media != "" {
		request.Header.Set("Content-Type", s.media)
		request.Header.Set("Content-Disposition", `attachment; filename="Beleg.png"`)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") { // it has no end
		return answer{status: response.StatusCode}, nil
	}
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body)}, err
}

// memberOf returns a text in a JSON body, such as that of "documents.0.id".
func memberOf(body, path string) string {
	var at any
	if json.Unmarshal([]byte(body), &at) != nil {
		return ""
	}
	for member := range strings.SplitSeq(path, ".") {
		switch value := at.(type) {
		case map[string]any:
			at = value[member]
		case []any:
			i, err := strconv.Atoi(member)
			if err != nil || i >= len(value) {
				return ""
			}
			at = value[i]
		}
	}
	text, _ := at.(string)
	return text
}

var (
	// picture is the file that all users upload.
	picture = encoded(image.NewGray(image.Rect(0, 0, 40, 20)))

	// noise is a picture of 40 KB: an upload begins when the server has read 8 KB of it.
	noise = func() string {
		p, random := image.NewGray(image.Rect(0, 0, 200, 200)), rand.New(rand.NewPCG(1, 2))
		for i := range p.Pix {
			p.Pix[i] = byte(random.Uint32())
		}
		return encoded(p)
	}()
)

func encoded(p image.Image) string {
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		panic(err)
	}
	return b.String()
}

// sanctions returns a form with a list that has the names of the attacker and of the bystander.
func sanctions() (body, media string) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "targets.simple.csv")
	if err == nil {
		_, err = io.WriteString(file, "id,schema,name,aliases,birth_date,countries,sanctions,dataset\n"+
			"NK-1,Person,Viktor Beispielow,,1960,ru,,Sample\nNK-2,Person,Nora Listowa,,1970,ru,,Sample\n")
	}
	if err = errors.Join(err, w.WriteField("name", "Sample"), w.Close()); err != nil {
		panic(err)
	}
	return form.String(), w.FormDataContentType()
}

// request returns a step with a JSON body.
func request(by, method, path, body string) step {
	return step{by: by, method: method, path: path, body: body}
}

// keeping gives a member of the answer a name, such as its "id".
func (s step) keeping(name, member string) step {
	s.keep = map[string]string{name: member}
	return s
}

// sending gives the body another type.
func (s step) sending(media string) step {
	s.media = media
	return s
}

// customer creates the record of a customer, who adds a passport.
func customer(of, first, last string) []step {
	path := "/v1/customers/<" + of + ".customer>"
	return []step{
		request(of, "POST", "/v1/customers", fmt.Sprintf(`{"first_name":%q,"last_name":%q,"email":%q,"date_of_birth":"1971-03-04",
			"nationality":"CHE","address":{"city":"Bern","country":"CH"}}`, first, last, emailOf(of))).keeping(of+".customer", "id"),
		request(of, "PUT", path+"/kyc", `{"documents":[{"type":"passport","number":"X1234567","expiry_date":"2031-05-01","country":"CHE"}]}`),
		request(of, "GET", path+"/kyc", "").keeping(of+".document", "documents.0.id"),
	}
}

// encloses uploads a file to a message of a person.
func encloses(of, message string) step {
	return request(of, "POST", "/v1/chats/<"+of+".chat>/messages/<"+of+"."+message+">/files", picture).sending("image/png")
}

// verified takes the case of a customer to its end.
func verified(of string) []step {
	path := "/v1/customers/<" + of + ".customer>/kyc/status"
	return []step{
		request("reviewer", "PATCH", path, `{"kyc_status":"in_review"}`),
		request("reviewer", "PATCH", path, `{"kyc_status":"verified","reason":"Seen."}`),
	}
}

// screen compares all customers with the list.
var screen = step{does: "the bank compares its customers with the list", job: func(b *bank) {
	if err := b.server.Screening.Rescreen(b.Context()); err != nil {
		b.Fatal(err)
	}
}}

// runImports runs the imports that wait.
var runImports = step{does: "the bank runs its imports", job: func(b *bank) {
	if err := b.server.Imports.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
}}

// nameHits names the hits by the person that they are about.
var nameHits = step{does: "the hits get names", job: func(b *bank) {
	var hits struct {
		Data []struct {
			ID        string
			SubjectID string `json:"subject_id"`
		}
	}
	list := b.send(request(admin, "GET", "/v1/screening/hits", ""))
	if err := json.Unmarshal([]byte(list.body), &hits); err != nil || len(hits.Data) != 2 {
		b.Fatalf("got %s, want two hits", list.body)
	}
	for _, h := range hits.Data {
		b.name(strings.Replace(b.names[h.SubjectID], ".customer", ".hit", 1), h.ID)
	}
}}

// opening are the steps that make the records of the people. All requests must succeed.
var opening = func() (all []step) {
	for _, c := range [][3]string{
		{"victim", "Anna", "Muster"}, {"bystander", "Nora", "Listowa"}, {attacker, "Viktor", "Beispielow"}, {accomplice, "Max", "Meier"},
	} {
		all = append(all, customer(c[0], c[1], c[2])...)
	}
	all = append(all, uploads.keeping("victim.file", "id"))
	all = append(append(all, verified("victim")...), verified(attacker)...)
	form, media := sanctions()
	all = append(all, request(admin, "POST", "/v1/screening/lists", form).sending(media), screen, nameHits)
	for _, of := range []string{"victim", attacker, accomplice} {
		all = append(all, recordsOf(of)...)
	}
	return append(all, request(admin, "PUT", "/v1/customers/<bystander.customer>/legal-hold", `{"reason":"A dispute."}`))
}()

// recordsOf makes a task, a persona, a payer and a chat with the bank.
func recordsOf(of string) []step {
	messages := "/v1/chats/<" + of + ".chat>/messages"
	return []step{
		request("reviewer", "POST", "/v1/customers/<"+of+".customer>/tasks", `{"title":"Sign the contract","category":"sign"}`).keeping(of+".task", "id"),
		request(of, "POST", "/v1/personas", `{"first_name":"Jan","last_name":"Muster","date_of_birth":"2015-02-28"}`).keeping(of+".persona", "id"),
		request(of, "POST", "/v1/payers", `{"customer_id":"<`+of+`.customer>","company":"Muster AG","country":"CHE"}`).keeping(of+".payer", "id"),
		request(of, "POST", "/v1/chats/bank", `{"content":"Grüezi"}`).keeping(of+".chat", "id"),
		request(of, "POST", messages, `{"content":"An enclosure"}`).keeping(of+".message", "id"),
		encloses(of, "message"),
		request(of, "POST", messages, `{"content":"Another enclosure"}`).keeping(of+".message2", "id"),
	}
}
