package directory_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"kontor/modules/identity/directory"
	"kontor/server/access"
	"kontor/store"
)

const reserved = "users.display_name_reserved"

// namedUser creates a user with roles and a display name, as an operator does.
func (h *harness) namedUser(login, name string, roles ...string) testUser {
	h.t.Helper()
	u, err := h.service.Create(h.t.Context(), directory.NewUser{Value: login, DisplayName: name, Password: password, Roles: roles})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.signInUser(u.ID)
}

func (h *harness) signInUser(id string) (m testUser) {
	h.t.Helper()
	m.id = id
	h.exec(func(ctx context.Context, tx *store.Tx) (err error) {
		m.token, _, err = h.auth.OpenSession(ctx, tx, id)
		return err
	})
	return m
}

// rename sends a request that changes a display name.
func (h *harness) rename(as, of testUser, name string) reply {
	h.t.Helper()
	return h.call(as.token, "PATCH", of.path(""), map[string]any{"display_name": name})
}

func TestUpdate_ChangesTheDisplayName(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	r := h.rename(m, m, "  Anna \u00a0 Mu\u0308ller ").want(t, 200, "")
	if got := r.text("display_name"); got != "Anna Müller" {
		t.Errorf("stored %q", got)
	}
	if got := h.call(m.token, "GET", "/v1/users/me", nil).want(t, 200, "").text("display_name"); got != "Anna Müller" {
		t.Errorf("the user reads %q", got)
	}
	if n := h.audited("users.update", m.id); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
	etag := r.Header.Get("ETag")
	if again := h.rename(m, m, "Anna Müller").want(t, 200, ""); again.Header.Get("ETag") != etag || h.audited("users.update", m.id) != 1 {
		t.Error("setting the same name counts as a change")
	}
	if r := h.rename(m, m, "").want(t, 200, ""); r.text("display_name") != "" {
		t.Errorf("got %s, want no name", r.Text)
	}
}

func TestUpdate_RejectsMalformedNames(t *testing.T) {
	h := newHarness(t)
	m, admin := h.customer(email(1)), h.admin()
	for what, name := range map[string]string{
		"blank": "   ", "right-to-left override": "Anna \u202erelleK", "zero-width space": "Kon\u200btor", "joiner": "An\u200dna", "line break": "Anna\nKeller",
		"10,000 characters": strings.Repeat("a", 10_000), "emoji only": "🙂", "punctuation only": "...", "combining marks": "A\u0316\u0317\u0318\u0319nna",
	} {
		for _, as := range []testUser{m, admin} {
			r := h.rename(as, m, name)
			if r.Status != 400 || r.text("code") != "common.invalid_input" || !strings.Contains(r.Text, `"display_name"`) {
				t.Errorf("%s: got %d %s", what, r.Status, r.Text)
			}
		}
	}
	for _, name := range []string{"'; DROP TABLE users; --", "<script>alert(1)</script>", "$1", "100%_\\", "{{.Name}}"} {
		if got := h.rename(m, m, name).want(t, 200, "").text("display_name"); got != name {
			t.Errorf("stored %q for %q", got, name)
		}
	}
}

// lookAlikeNames are names that resemble those of Anna Keller (anna.k, anna@bank.example) or of the bank.
var lookAlikeNames = map[string]string{
	"the same":                "Anna Keller",
	"case":                    "ANNA KELLER",
	"Cyrillic letters":        "Аnnа Kеllеr",
	"Greek capital":           "ΑΝΝΑ ΚELLER",
	"Coptic capitals":         "AⲚⲚA ⲔELLER",
	"fullwidth letters":       "Ａｎｎａ Ｋｅｌｌｅｒ",
	"digits for letters":      "Anna Ke11er",
	"capital I for l":         "Anna KeIIer",
	"accents":                 "Ànná Këller",
	"dots below":              "Ạnna Ḳeller",
	"spaces":                  "  Anna \u2003Keller ",
	"no space":                "AnnaKeller",
	"reversed":                "Keller Anna",
	"reversed, with a comma":  "Keller, Anna",
	"reversed, without space": "KellerAnna",
	"punctuation":             "A.n.n.a-K.e.l.l.e.r!",
	"spaced letters":          "A n n a K e l l e r",
	"sign-in name":            "anna.k",
	"sign-in name as a name":  "Anna K",
	"e-mail address":          "Anna@Bank.example",
	"the bank":                "Kontor",
	"the bank's support":      "Kontor Support",
	"zeros for letters":       "K0nt0r Supp0rt",
	"the bank, Greek capital": "ΚOΝTOR",
	"administrator":           "Anna (Administrator)",
	"in German":               "Ihr Kundendienst",
	"with a role":             "Anna Keller, Advisor",
	"with a title":            "Frau Anna Keller",
	"with a place":            "Anna Keller (Zürich)",
	"with a title, no space":  "FrauAnnaKeller",
	"small letters":           "frauannakeller",
	"capitals":                "FRAUANNAKELLER",
	"in one word with one":    "FrauAnna Keller",
	"a short title":           "DrAnna Keller",
	"with a full stop":        "Dr.Anna Keller",
	"a short one, one word":   "drannakeller",
	"two titles":              "Frau DrAnnaKeller",
	"a title behind":          "AnnaKellerAdvisor",
	"title, name reversed":    "Sig.raKellerAnna",
	"in a sentence":           "Ihre FrauAnnaKeller hier",
	"one word and a place":    "annakeller Zürich",
	"without her title":       "Rosa Berger",
	"small capitals":          "ᴀɴɴᴀ ᴋᴇʟʟᴇʀ",
	"a symbol for e":          "Anna K℮ller",
	"a department":            "Kundenberatung",
	"in French":               "Sécurité de la banque",
	"in Italian":              "Servizio clienti",
}

func TestUpdate_RejectsNamesOfStaff(t *testing.T) {
	h := newHarness(t)
	anna := h.namedUser("anna.k", "Anna Keller", "Advisor")
	h.addEmail(anna, "anna@bank.example")
	h.namedUser("rosa.b", "Dr. Rosa Berger", "Advisor")
	users := 0
	for what, name := range lookAlikeNames {
		t.Run(what, func(t *testing.T) {
			users += 2 // the rate of changes of a user is limited
			m := h.customer(email(users))
			h.rename(m, m, name).want(t, 409, reserved)
			if got := h.call(m.token, "GET", m.path(""), nil).text("display_name"); got != "" {
				t.Errorf("the name is %q", got)
			}
			registered := registration("email", email(users+1))
			registered["display_name"] = name
			h.call("key", "POST", registerPath, registered).want(t, 409, reserved)
		})
	}
}

func TestUpdate_AllowsNamesOfOthers(t *testing.T) {
	h := newHarness(t)
	anna := h.namedUser("anna.k", "Anna Keller", "Advisor")
	h.namedUser("ida.m", "Ida Meier", "Advisor")
	h.namedUser("rita", "Ke", "Advisor")
	m, other := h.customer(email(1)), h.customer(email(2))
	// Frida, Drida and Magda only begin like titles. Ke is a single word, and other names begin with a title and it.
	for _, name := range []string{"Anna Kellner", "Hanna Keller", "Anna", "Kontorowicz", "Peter Müller", "Frida Meier", "FRIDA MEIER", "Drida Meier",
		"Frauke", "Frauke Ida", "Anna-Ida Meier", "Annakellermann", "Magda Keller"} {
		h.rename(m, m, name).want(t, 200, "")
		h.rename(other, other, name).want(t, 200, "") // two customers may share a name
	}
	// Staff may keep and vary their own name.
	h.rename(anna, anna, "Keller Anna").want(t, 200, "")
	h.rename(anna, anna, "Anna.K").want(t, 200, "")
}

func TestUpdate_AllowsAdministratorsAnyName(t *testing.T) {
	h := newHarness(t)
	h.namedUser("anna.k", "Anna Keller", "Advisor")
	m, admin := h.customer(email(1)), h.admin()
	for _, name := range []string{"Anna Keller", "Kontor Support"} {
		h.rename(admin, m, name).want(t, 200, "")
	}
	h.rename(admin, admin, "Kontor Administrator").want(t, 200, "")
}

func TestUpdate_RequiresTheUserOrAnAdministrator(t *testing.T) {
	h := newHarness(t)
	m, other, clerk := h.customer(email(1)), h.customer(email(2)), h.personnel()
	h.rename(other, m, "Peter Müller").want(t, 403, "common.rbac_no_rec_access")
	h.rename(clerk, m, "Peter Müller").want(t, 403, "common.rbac_no_rec_access") // may update users, but is not an administrator
	h.call("key", "PATCH", m.path(""), map[string]any{"display_name": "Peter Müller"}).want(t, 401, "common.unauthorized")
	h.call("", "PATCH", m.path(""), map[string]any{"display_name": "Peter Müller"}).want(t, 401, "common.unauthorized")
	if got := h.call(m.token, "GET", m.path(""), nil).text("display_name"); got != "" {
		t.Errorf("the name is %q", got)
	}
}

func TestUpdate_ReservesTheNamesOfCurrentStaff(t *testing.T) {
	h := newHarness(t)
	admin, m, other := h.admin(), h.customer(email(1)), h.customer(email(2))
	// The names of disabled staff stay reserved.
	gone := h.namedUser("bruno.f", "Bruno Frei", "Advisor")
	h.call(admin.token, "PATCH", gone.path(""), map[string]any{"status": "disabled"}).want(t, 200, "")
	h.rename(m, m, "Frei Bruno").want(t, 409, reserved)
	// The name of a customer is reserved once they become staff. Other users with that name keep it.
	carla := h.namedUser("carla.m", "Carla Meier", "Customer")
	h.rename(other, other, "Carla Meier").want(t, 200, "")
	h.call(admin.token, "PUT", carla.path("/roles"), map[string]any{"roles": []string{"Advisor"}}).want(t, 200, "")
	h.rename(m, m, "Carla Meier").want(t, 409, reserved)
	if got := h.call(other.token, "GET", other.path(""), nil).text("display_name"); got != "Carla Meier" {
		t.Errorf("another user lost the name: %q", got)
	}
	h.call(admin.token, "PUT", carla.path("/roles"), map[string]any{"roles": []string{"Customer"}}).want(t, 200, "")
	h.rename(m, m, "Carla Meier").want(t, 200, "")
	// A grant to the user makes them staff as well.
	h.policy.Store(access.NewPolicy(access.PolicyData{
		Types:     map[string]map[string]access.Permission{carla.id: {"tasks": access.ReadAll}},
		Endpoints: map[string][]string{access.Customer: {"PATCH /v1/users/{id}"}}}))
	h.rename(other, other, "Meier, Carla").want(t, 409, reserved)
}

// The rejections reveal names of staff, so that attempts are limited.
func TestUpdate_LimitsRejectedNames(t *testing.T) {
	h := newHarness(t)
	h.namedUser("anna.k", "Anna Keller", "Advisor")
	m := h.customer(email(1))
	for range 10 {
		h.rename(m, m, "Anna Keller").want(t, 409, reserved)
	}
	h.rename(m, m, "Anna Keller").want(t, 429, "rate_limits_m.exceeded")
	h.rename(m, m, "Peter Müller").want(t, 429, "rate_limits_m.exceeded") // otherwise the limit would reveal the same
}

func TestUpdate_ParallelRenames(t *testing.T) {
	h := newHarness(t)
	h.namedUser("anna.k", "Anna Keller", "Advisor")
	m := h.customer(email(1))
	var workers sync.WaitGroup
	statuses := make([]int, 50)
	for i := range statuses {
		name := fmt.Sprintf("Peter Müller %d", i)
		if i%10 == 0 {
			name = "Anna Keller"
		}
		workers.Go(func() { statuses[i] = h.rename(m, m, name).Status })
	}
	workers.Wait()
	renamed := 0
	for i, status := range statuses {
		switch want := map[bool]int{true: 409, false: 200}[i%10 == 0]; status {
		case want:
			renamed += status / 200 % 2
		default:
			t.Errorf("request %d: got %d, want %d", i, status, want)
		}
	}
	if n := h.audited("users.update", m.id); n != 45 {
		t.Errorf("%d audit entries, want 45", n)
	}
	if got := h.call(m.token, "GET", m.path(""), nil).text("display_name"); !strings.HasPrefix(got, "Peter Müller ") {
		t.Errorf("the name is %q", got)
	}
}

func TestRegister_TakesADisplayName(t *testing.T) {
	h := newHarness(t)
	in := registration("email", email(1))
	in["display_name"] = " Anna Müller "
	r := h.call("key", "POST", registerPath, in).want(t, 201, "")
	people, err := h.service.People(t.Context(), []string{r.text("user_id")})
	if err != nil || people[r.text("user_id")].DisplayName != "Anna Müller" {
		t.Errorf("got %v, %v", people, err)
	}
	in = registration("email", email(2))
	in["display_name"] = "\u202e"
	h.call("key", "POST", registerPath, in).want(t, 400, "common.invalid_input")
}

func TestList_FindsDisplayNames(t *testing.T) {
	h := newHarness(t)
	clerk := h.personnel()
	for i, name := range []string{"Zoë Müller", "anna Muller", "Émile Blanc"} {
		h.namedUser(email(i), name, "Customer")
	}
	names := func(query string) (found []string) {
		r := h.call(clerk.token, "GET", "/v1/users?"+query, nil).want(t, 200, "")
		for _, row := range r.Body["data"].([]any) {
			found = append(found, row.(map[string]any)["display_name"].(string))
		}
		return found
	}
	for query, want := range map[string]string{
		"search.display_name=*muller*&sort=display_name": "anna Muller|Zoë Müller",
		"search.display_name=MÜLLER*":                    "",
		"search.display_name=emile+blanc":                "Émile Blanc",
		"search.display_name=zoe*":                       "Zoë Müller",
	} {
		if got := strings.Join(names(query), "|"); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
