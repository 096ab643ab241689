package search_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// results are the answer of a search.
type results struct {
	Groups []struct {
		Type string
		Rows []struct {
			ID, Title, Subtitle, Path string
			CustomerID                *string `json:"customer_id"`
			MessageID                 *string `json:"message_id"`
			Line                      *string
		}
		HasMore bool `json:"has_more"`
	}
	Complete bool
}

// titles returns what was found, in order: the type and the title.
func (r results) titles() (found []string) {
	for _, g := range r.Groups {
		for _, row := range g.Rows {
			found = append(found, g.Type+" "+row.Title)
		}
	}
	return found
}

func find(t testing.TB, c *servertest.Client, text string, more ...string) (r results) {
	t.Helper()
	c.Do("GET", "/v1/search?"+strings.Join(append([]string{"q=" + url.QueryEscape(text)}, more...), "&"), nil).Expect(t, 200).Into(t, &r)
	if !r.Complete {
		t.Errorf("%q: the answer is incomplete", text)
	}
	return r
}

func customer(c *servertest.Client, first, last, email, phone string) string {
	return c.Create("/v1/customers", servertest.Body{"type": "individual", "first_name": first, "last_name": last, "email": email, "phone": phone})
}

func TestSearch_FindsCustomersByAnySpelling(t *testing.T) {
	s := servertest.Start(t)
	beat := customer(s.Admin(), "Beat", "Küng", "b.kueng@bank.example", "079 456 12 34")
	customer(s.Admin(), "Jörg", "Müller", "joerg@mueller.example", "+41 44 668 18 00")
	customer(s.Admin(), "Søren", "Weiß", "soren@fjord.example", "+49 30 123456")
	customer(s.Admin(), "Zoë", "Peña-D'Angelo", "zoe@example.com", "+41 44 668 18 01")
	for text, want := range map[string]string{
		"beat kung": "Beat Küng", "kung beat": "Beat Küng", "KÜNG": "Beat Küng", "kueng": "Beat Küng", "Bea": "Beat Küng",
		"b.kueng@bank.example": "Beat Küng", "bank.example": "Beat Küng", "B.Küng@bank": "Beat Küng",
		"079 456 12 34": "Beat Küng", "0794561234": "Beat Küng", "+41 79 456": "Beat Küng", "0041 79 456 12 34": "Beat Küng",
		"+41 (0)79 456 12 34": "Beat Küng", "456 12": "Beat Küng", "561234": "Beat Küng", "Küng 079 456": "Beat Küng",
		beat: "Beat Küng", beat[:20]: "Beat Küng", strings.ToUpper(beat[:30]): "Beat Küng",
		"muller": "Jörg Müller", "mueller": "Jörg Müller", "Müller": "Jörg Müller", "jorg mul": "Jörg Müller", "MUELLER JOERG": "Jörg Müller",
		"soren weiss": "Søren Weiß", "weiß": "Søren Weiß", "Soeren": "Søren Weiß", "fjord": "Søren Weiß",
		"pena": "Zoë Peña-D'Angelo", "dangelo": "Zoë Peña-D'Angelo", "d’angelo zoe": "Zoë Peña-D'Angelo",
	} {
		if got := find(t, s.Admin(), text).titles(); !slices.Equal(got, []string{"customers " + want}) {
			t.Errorf("%q: got %q, want %s", text, got, want)
		}
	}
	for _, text := range []string{"beat muller", "kungx", "x", "12345678901", "---", "\"", "*", "a AND", "NEAR(", "😀", "ｶ", "\u202e", "' OR 1=1 --", "$x", "%", "_"} {
		if got := find(t, s.Admin(), text, "types=customers").titles(); len(got) != 0 {
			t.Errorf("%q: got %q, want nothing", text, got)
		}
	}
}

func TestSearch_RejectsWrongParameters(t *testing.T) {
	s := servertest.Start(t)
	for _, query := range []string{"", "q=", "q=%20", "q=" + strings.Repeat("a", 201), "q=" + strings.Repeat("%20x", 1000), "q=a&types=grants", "q=a&limit=0", "q=a&limit=21", "q=a&limit=x"} {
		s.Admin().Do("GET", "/v1/search?"+query, nil).ExpectError(t, 400, "common.invalid_input")
	}
	s.Anonymous().Do("GET", "/v1/search?q=a", nil).Expect(t, 401)
}

func TestSearch_FollowsChanges(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	id := customer(admin, "Anna", "Keller", "anna@example.com", "+41 44 668 18 00")
	if got := find(t, admin, "keller").titles(); !slices.Equal(got, []string{"customers Anna Keller"}) {
		t.Errorf("after the creation: %q", got)
	}
	admin.Do("PUT", "/v1/customers/"+id, servertest.Body{"last_name": "Brunner"}).Expect(t, 200)
	if got := find(t, admin, "brunner").titles(); !slices.Equal(got, []string{"customers Anna Brunner"}) {
		t.Errorf("after the change: %q", got)
	}
	if got := find(t, admin, "keller").titles(); len(got) != 0 {
		t.Errorf("the former name finds %q", got)
	}
	task := admin.Create("/v1/customers/"+id+"/tasks", servertest.Body{"title": "Unterschrift prüfen", "category": "sign", "description": "Formular Quittung"})
	r := find(t, admin, "quittung")
	if got := r.titles(); !slices.Equal(got, []string{"tasks Unterschrift prüfen"}) || r.Groups[0].Rows[0].Path != "/v1/customers/"+id+"/tasks/"+task {
		t.Errorf("got %+v", r)
	}
	admin.Do("GET", r.Groups[0].Rows[0].Path, nil).Expect(t, 200)
	admin.Do("DELETE", "/v1/customers/"+id+"/tasks/"+task, nil).Expect(t, 200)
	if got := find(t, admin, "quittung").titles(); len(got) != 0 {
		t.Errorf("the deleted task is found: %q", got)
	}
}

func TestSearch_FindsOnlyWhatTheCallerMayRead(t *testing.T) {
	s := servertest.Start(t)
	anna, bob := s.User(access.Customer), s.User(access.Customer)
	customer(anna, "Anna", "Zwyssig", "anna@example.com", "+41 44 668 18 00")
	customer(bob, "Bob", "Zwyssig", "bob@example.com", "+41 44 668 18 01")
	for c, want := range map[*servertest.Client][]string{
		anna: {"customers Anna Zwyssig"}, bob: {"customers Bob Zwyssig"}, s.Admin(): {"customers Bob Zwyssig", "customers Anna Zwyssig"},
	} {
		if got := find(t, c, "zwyssig").titles(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, query := range []string{"q=zwyssig", "q=zw&sort=first_name", "q=zwyssig&stack=type", "q=zwyssig&distinct=id", "q=zwyssig&search.type=individual&limit=1"} {
			if got := c.Do("GET", "/v1/customers?"+query, nil).Expect(t, 200).JSON(t)["total"]; got != float64(len(want)) {
				t.Errorf("%s: total %v, want %d", query, got, len(want))
			}
		}
	}
	if got := find(t, anna, "bob").titles(); len(got) != 0 {
		t.Errorf("a customer finds %q", got)
	}
}

func TestSearch_FindsMessagesInTheChatsOfTheCaller(t *testing.T) {
	s := servertest.Start(t)
	anna, bob, eve := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Advisor)
	chat := anna.Create("/v1/chats", servertest.Body{"participants": []string{bob.UserID}, "metadata": servertest.Body{"title": "Hypothek Seeblick"}})
	message := bob.Create("/v1/chats/"+chat+"/messages", servertest.Body{"content": "Guten Tag\nder Grundbuchauszug fehlt noch, bitte bis Freitag nachreichen."})
	for _, c := range []*servertest.Client{anna, bob} {
		r := find(t, c, "grundbuch", "types=chats")
		if len(r.Groups) != 1 || len(r.Groups[0].Rows) != 1 || *r.Groups[0].Rows[0].MessageID != message || !strings.Contains(*r.Groups[0].Rows[0].Line, "Grundbuchauszug fehlt") {
			t.Fatalf("got %+v", r)
		}
		if r := find(t, c, "seeblick"); len(r.Groups) != 1 || r.Groups[0].Rows[0].ID != chat || r.Groups[0].Rows[0].MessageID != nil {
			t.Errorf("by its title: %+v", r)
		}
		if list := c.Do("GET", "/v1/chats?q=freitag", nil).Expect(t, 200); !strings.Contains(list.Body, chat) {
			t.Errorf("the list has %s", list.Body)
		}
		if list := c.Do("GET", "/v1/chats?q=samstag", nil).Expect(t, 200); strings.TrimSpace(list.Body) != "[]" {
			t.Errorf("the list has %s", list.Body)
		}
	}
	if r := find(t, eve, "grundbuch"); len(r.Groups) != 0 {
		t.Errorf("a stranger to the chat finds %+v", r)
	}
}
