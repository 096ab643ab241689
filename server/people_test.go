package server_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/modules/app"
	"kontor/modules/kit/list"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

const (
	annaID    = "0193a000-0000-7000-8000-00000000000a"
	beatID    = "0193a000-0000-7000-8000-00000000000b"
	unknownID = "0193a000-0000-7000-8000-00000000000f"
)

// staff is a resolver of two users. It shows names of sign-in to the caller user-creator only.
type staff struct {
	db    *store.DB // read in each call, where set
	calls int
	asked []string
	err   error
}

func (s *staff) People(ctx context.Context, ids []string) (map[string]endpoint.Person, error) {
	s.calls++
	s.asked = slices.Clone(ids)
	if s.db != nil {
		var one int
		if err := store.QuerierFrom(ctx, s.db).QueryRow(ctx, "SELECT 1").Scan(&one); err != nil {
			return nil, err
		}
	}
	known := map[string]endpoint.Person{annaID: {DisplayName: "Anna", UserName: "anna"}, beatID: {DisplayName: "Beat", UserName: "beat", Staff: true}}
	found := map[string]endpoint.Person{}
	for _, id := range ids {
		if person, ok := known[id]; ok {
			if access.From(ctx).UserID != "user-creator" {
				person.UserName = ""
			}
			found[id] = person
		}
	}
	return found, s.err
}

// note is a record that names users. As a row of a list it does so by pointer.
type note struct {
	ID      string   `json:"id"`
	Authors []string `json:"authors"`
}

func (n note) EachUser(add func(string)) {
	for _, id := range n.Authors {
		add(id)
	}
}

func (n note) ETag() string { return "v1" }

type authored struct {
	Author string `json:"author"`
}

func (r *authored) EachUser(add func(string)) { add(r.Author) }

type empty struct{}

func (empty) EachUser(add func(string)) { add(annaID) }

func noteRows(authors ...string) []endpoint.Endpoint {
	reads := access.On(access.Customers, access.Read)
	table := []endpoint.Endpoint{
		{Name: "notes.get", Method: "GET", Path: "/v1/things/{id}", Access: reads,
			Handle: endpoint.JSON(200, func(_ context.Context, in thingInput) (note, error) { return note{ID: in.ID, Authors: authors}, nil })},
		{Name: "notes.list", Method: "GET", Path: "/v1/notes", Access: reads,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (list.Page[authored], error) {
				page := list.Page[authored]{Data: list.Data[authored]{Rows: []authored{}}}
				for _, author := range authors {
					page.Data.Rows = append(page.Data.Rows, authored{author})
				}
				return page, nil
			})},
		{Name: "things.list", Method: "GET", Path: "/v1/things", Access: reads,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (list.Page[thing], error) { return list.Page[thing]{}, nil })},
		{Name: "empty", Method: "GET", Path: "/v1/empty", Access: reads,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (empty, error) { return empty{}, nil })},
		{Name: "fails", Method: "GET", Path: "/v1/fails", Access: reads,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (note, error) {
				return note{Authors: authors}, errors.New("broken")
			})},
	}
	for i := range table {
		table[i].Tag, table[i].Summary, table[i].Limit = "Operations", "Test.", ratelimit.Private
	}
	return table
}

// startNotes runs a server whose records name the authors.
func startNotes(t *testing.T, people server.People, authors ...string) string {
	t.Helper()
	address, _ := start(t, func(o *server.Options) {
		o.Endpoints, o.People, o.Policy = noteRows(authors...), people, &access.Current{}
		o.Policy.Store(access.NewPolicy(access.PolicyData{Endpoints: map[string][]string{
			"user-creator": {"GET /v1/things/{id}", "GET /v1/notes", "GET /v1/things", "GET /v1/empty", "GET /v1/fails"},
			"user-reader":  {"GET /v1/things/{id}"},
		}}))
	})
	return address
}

func TestAnswer_NamesThePeopleOfARecordAndOfAList(t *testing.T) {
	resolver := &staff{}
	address := startNotes(t, resolver, beatID, "", unknownID, annaID, beatID)
	const people = `"people":{"` + beatID + `":{"display_name":"Beat","user_name":"beat","staff":true},"` +
		annaID + `":{"display_name":"Anna","user_name":"anna","staff":false}}}`
	for _, path := range []string{thingPath, "/v1/notes"} {
		response, body := servertest.Send(t, address, "GET", path, "", "Authorization", "Bearer user-creator")
		if response.StatusCode != 200 || !strings.HasSuffix(body, ","+people) {
			t.Errorf("%s: got %d %s, want the last member %s", path, response.StatusCode, body, people)
		}
		if want := []string{beatID, unknownID, annaID}; !slices.Equal(resolver.asked, want) {
			t.Errorf("%s: asked for %q, want each id once: %q", path, resolver.asked, want)
		}
	}
	if resolver.calls != 2 {
		t.Errorf("%d calls for two answers", resolver.calls)
	}
	if _, body := servertest.Send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-reader"); strings.Contains(body, "user_name") {
		t.Errorf("a user who is not staff got %s", body)
	}
	if _, body := servertest.Send(t, address, "GET", "/v1/empty", "", "Authorization", "Bearer user-creator"); !strings.HasPrefix(body, `{"people":{"`) {
		t.Errorf("a record without members got %s", body)
	}
	if response, body := servertest.Send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-reader", "If-None-Match", `"v1"`); response.StatusCode != 304 || body != "" {
		t.Errorf("got %d %s, want 304: the tag is that of the record", response.StatusCode, body)
	}
}

func TestAnswer_HasPeopleOnlyWhereUsersAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		resolver *staff
		authors  []string
		path     string
		want     string // end of the answer
		calls    int
	}{
		"nobody is named":               {&staff{}, []string{""}, "/v1/notes", `"has_more":false}`, 0},
		"an empty list":                 {&staff{}, nil, "/v1/notes", `"has_more":false}`, 0},
		"rows that name nobody":         {&staff{}, []string{annaID}, "/v1/things", `"has_more":false}`, 0},
		"only unknown users":            {&staff{}, []string{unknownID}, "/v1/notes", `"has_more":false,"people":{}}`, 1},
		"names that cannot be read":     {&staff{err: errors.New("no table")}, []string{annaID}, "/v1/notes", `"has_more":false}`, 1},
		"an error of a record of users": {&staff{}, []string{annaID}, "/v1/fails", `"retryable":true}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			address := startNotes(t, c.resolver, c.authors...)
			_, body := servertest.Send(t, address, "GET", c.path, "", "Authorization", "Bearer user-creator")
			if !strings.HasSuffix(body, c.want) || c.resolver.calls != c.calls {
				t.Errorf("got %s after %d calls, want the end %s after %d", body, c.resolver.calls, c.want, c.calls)
			}
		})
	}
	address := startNotes(t, nil, annaID)
	if _, body := servertest.Send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-creator"); strings.Contains(body, "people") {
		t.Errorf("without a resolver: %s", body)
	}
}

// A repetition gets the bytes of the first answer, with the names as they were, whether the module prepared its answer or
// not. The digest in the audit trail covers the record alone.
func TestAnswer_IsStoredWithPeople(t *testing.T) {
	for name, prepare := range map[string]bool{"prepared": true, "not prepared": false} {
		t.Run(name, func(t *testing.T) {
			db := storetest.Open(t)
			resolver := &staff{db: db}
			made := note{ID: "n1", Authors: []string{annaID}}
			digests := map[string]bool{db.Digest(made).String(): true}
			create := func(ctx context.Context, _ endpoint.None) (note, error) {
				var answer any = made
				if prepare {
					encoded := db.Answer(ctx, made)
					digests[db.Digest(store.Record{}.As(encoded)).String()] = true
					answer = encoded
				}
				return made, db.InTx(ctx, func(tx *store.Tx) error {
					tx.Respond(answer)
					return nil
				})
			}
			address, _ := start(t, func(o *server.Options) {
				o.Endpoints = []endpoint.Endpoint{{Name: "things.create", Method: "POST", Path: "/v1/things", Access: access.On(access.Customers, access.Create),
					Limit: ratelimit.None, Tag: "Operations", Summary: "Test.", Handle: endpoint.JSON(201, create)}}
				o.Idempotency, o.Stored, o.ResponderKey = app.Idempotency{DB: db}, app.Stored, store.ResponderKey{}
				o.People, o.Log = resolver, slog.New(slog.DiscardHandler)
			})
			send := func(key string) (*http.Response, string) {
				return servertest.Send(t, address, "POST", "/v1/things", "", "Authorization", "Bearer user-creator", "Idempotency-Key", key)
			}
			first, body := send("k1")
			again, repeated := send("k1")
			if first.StatusCode != 201 || !strings.HasSuffix(body, `,"people":{"`+annaID+`":{"display_name":"Anna","user_name":"anna","staff":false}}}`) {
				t.Errorf("got %d %s", first.StatusCode, body)
			}
			if again.StatusCode != 201 || again.Header.Get("Idempotency-Replayed") != "true" || repeated != body || again.Header.Get("ETag") != `"v1"` {
				t.Errorf("the repetition got %d %s %q, want %s", again.StatusCode, repeated, again.Header.Get("ETag"), body)
			}
			if resolver.calls != 1 {
				t.Errorf("%d calls of the resolver, want 1", resolver.calls)
			}
			if len(digests) != 1 {
				t.Errorf("the digest of the encoded answer is not that of the record: %v", slices.Collect(maps.Keys(digests)))
			}
		})
	}
}

func TestDocument_DescribesPeople(t *testing.T) {
	_, web := start(t, func(o *server.Options) { o.Endpoints = noteRows() })
	built, _ := web.Document()
	text, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for name, schema := range document.Components.Schemas {
		_, has[name] = schema.Properties["people"]
	}
	for name, want := range map[string]bool{"Server_testNote": true, "Server_testAuthoredPage": true, "Server_testAuthored": false, "Server_testThingPage": false, "Person": false} {
		if got, known := has[name]; !known || got != want {
			t.Errorf("%s: known %v, people %v, want %v; all: %v", name, known, got, want, slices.Sorted(maps.Keys(has)))
		}
	}
}
