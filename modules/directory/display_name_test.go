package directory_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"kontor/modules/directory"
	"kontor/server/access"
	"kontor/store"
)

const reserved = "users.display_name_reserved"

// named makes a user with a role and a display name, as an operator does.
func (b *bank) named(login, name string, roles ...string) member {
	b.t.Helper()
	u, err := b.service.Create(b.t.Context(), directory.NewUser{Value: login, DisplayName: name, Password: password, Roles: roles})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.signedIn(u.ID)
}

func (b *bank) signedIn(id string) (m member) {
	b.t.Helper()
	m.id = id
	b.exec(func(ctx context.Context, tx *store.Tx) (err error) {
		m.token, _, err = b.auth.OpenSession(ctx, tx, id)
		return err
	})
	return m
}

// addEmail adds a validated e-mail address to a user.
func (b *bank) addEmail(m member, address string) {
	b.t.Helper()
	r := b.call(m.token, "POST", m.path("/credentials"), map[string]any{"credential_type": "email", "credential_value": address}).want(b.t, 201, "")
	b.call(m.token, "PUT", m.path("/credentials/"+r.text("id")+"/validate"), map[string]any{"otp": b.outbox.last(address).Code}).want(b.t, 200, "")
}

func (b *bank) rename(as, of member, name string) reply {
	b.t.Helper()
	return b.call(as.token, "PATCH", of.path(""), map[string]any{"display_name": name})
}

func TestUpdate_ChangesTheDisplayName(t *testing.T) {
	b := newBank(t)
	m := b.customer(email(1))
	r := b.rename(m, m, "  Anna \u00a0 Mu\u0308ller ").want(t, 200, "")
	if got := r.text("display_name"); got != "Anna Müller" {
		t.Errorf("stored %q", got)
	}
	if got := b.call(m.token, "GET", "/v1/users/me", nil).want(t, 200, "").text("display_name"); got != "Anna Müller" {
		t.Errorf("the user reads %q", got)
	}
	if n := b.audited("users.update", m.id); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
	etag := r.Header.Get("ETag")
	if again := b.rename(m, m, "Anna Müller").want(t, 200, ""); again.Header.Get("ETag") != etag || b.audited("users.update", m.id) != 1 {
		t.Error("the same name again counts as a change")
	}
	if r := b.rename(m, m, "").want(t, 200, ""); r.text("display_name") != "" {
		t.Errorf("got %s, want no name", r.Text)
	}
}

func TestUpdate_RefusesMalformedNames(t *testing.T) {
	b := newBank(t)
	m, admin := b.customer(email(1)), b.admin()
	for what, name := range map[string]string{
		"blank": "   ", "right-to-left override": "Anna \u202erelleK", "zero-width space": "Kon\u200btor", "joiner": "An\u200dna", "line break": "Anna\nKeller",
		"10,000 characters": strings.Repeat("a", 10_000), "emoji only": "🙂", "punctuation only": "...", "combining marks": "A\u0316\u0317\u0318\u0319nna",
	} {
		for _, as := range []member{m, admin} {
			r := b.rename(as, m, name)
			if r.Status != 400 || r.text("code") != "common.invalid_input" || !strings.Contains(r.Text, `"display_name"`) {
				t.Errorf("%s: got %d %s", what, r.Status, r.Text)
			}
		}
	}
	for _, name := range []string{"'; DROP TABLE users; --", "<script>alert(1)</script>", "$1", "100%_\\", "{{.Name}}"} {
		if got := b.rename(m, m, name).want(t, 200, "").text("display_name"); got != name {
			t.Errorf("stored %q for %q", got, name)
		}
	}
}

// resembling are names that may be taken for those of Anna Keller (anna.k, anna@bank.example) or of the bank.
var resembling = map[string]string{
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
	"in French":               "Sécurité de la banque",
	"in Italian":              "Servizio clienti",
}

func TestUpdate_RefusesNamesOfStaff(t *testing.T) {
	for what, name := range resembling {
		t.Run(what, func(t *testing.T) {
			b := newBank(t)
			anna := b.named("anna.k", "Anna Keller", "Advisor")
			b.addEmail(anna, "anna@bank.example")
			m := b.customer(email(1))
			b.rename(m, m, name).want(t, 409, reserved)
			if got := b.call(m.token, "GET", m.path(""), nil).text("display_name"); got != "" {
				t.Errorf("the name is %q", got)
			}
			registered := registration("email", email(2))
			registered["display_name"] = name
			b.call("key", "POST", registerPath, registered).want(t, 409, reserved)
		})
	}
}

func TestUpdate_AllowsNamesOfOthers(t *testing.T) {
	b := newBank(t)
	anna := b.named("anna.k", "Anna Keller", "Advisor")
	m, other := b.customer(email(1)), b.customer(email(2))
	for _, name := range []string{"Anna Kellner", "Hanna Keller", "Anna", "Kontorowicz", "Peter Müller"} {
		b.rename(m, m, name).want(t, 200, "")
		b.rename(other, other, name).want(t, 200, "") // two customers may share a name
	}
	// Staff may keep and vary their own name.
	b.rename(anna, anna, "Keller Anna").want(t, 200, "")
	b.rename(anna, anna, "Anna.K").want(t, 200, "")
}

func TestUpdate_AllowsAdministratorsAnyName(t *testing.T) {
	b := newBank(t)
	b.named("anna.k", "Anna Keller", "Advisor")
	m, admin := b.customer(email(1)), b.admin()
	for _, name := range []string{"Anna Keller", "Kontor Support"} {
		b.rename(admin, m, name).want(t, 200, "")
	}
	b.rename(admin, admin, "Kontor Administrator").want(t, 200, "")
}

func TestUpdate_RequiresTheBearerOrAnAdministrator(t *testing.T) {
	b := newBank(t)
	m, other, clerk := b.customer(email(1)), b.customer(email(2)), b.personnel()
	b.rename(other, m, "Peter Müller").want(t, 403, "common.rbac_no_rec_access")
	b.rename(clerk, m, "Peter Müller").want(t, 403, "common.rbac_no_rec_access") // may update users and is no administrator
	b.call("key", "PATCH", m.path(""), map[string]any{"display_name": "Peter Müller"}).want(t, 401, "common.unauthorized")
	b.call("", "PATCH", m.path(""), map[string]any{"display_name": "Peter Müller"}).want(t, 401, "common.unauthorized")
	if got := b.call(m.token, "GET", m.path(""), nil).text("display_name"); got != "" {
		t.Errorf("the name is %q", got)
	}
}

func TestUpdate_ComparesWithStaffAsTheyAreNow(t *testing.T) {
	b := newBank(t)
	admin, m, other := b.admin(), b.customer(email(1)), b.customer(email(2))
	// A disabled staff member keeps the protection.
	gone := b.named("bruno.f", "Bruno Frei", "Advisor")
	b.call(admin.token, "PATCH", gone.path(""), map[string]any{"status": "disabled"}).want(t, 200, "")
	b.rename(m, m, "Frei Bruno").want(t, 409, reserved)
	// A customer does not have it, and gets it with the role. Those who have the name already keep it.
	carla := b.named("carla.m", "Carla Meier", "Customer")
	b.rename(other, other, "Carla Meier").want(t, 200, "")
	b.call(admin.token, "PUT", carla.path("/roles"), map[string]any{"roles": []string{"Advisor"}}).want(t, 200, "")
	b.rename(m, m, "Carla Meier").want(t, 409, reserved)
	if got := b.call(other.token, "GET", other.path(""), nil).text("display_name"); got != "Carla Meier" {
		t.Errorf("a name was taken away: %q", got)
	}
	b.call(admin.token, "PUT", carla.path("/roles"), map[string]any{"roles": []string{"Customer"}}).want(t, 200, "")
	b.rename(m, m, "Carla Meier").want(t, 200, "")
	// A grant to the user makes them staff, too.
	b.policy.Store(access.NewPolicy(access.PolicyData{
		Types:     map[string]map[string]access.Permission{carla.id: {"tasks": access.ReadAll}},
		Endpoints: map[string][]string{access.Customer: {"PATCH /v1/users/{id}"}}}))
	b.rename(other, other, "Meier, Carla").want(t, 409, reserved)
}

// The refusals reveal names of staff: few may be tried.
func TestUpdate_LimitsRefusedNames(t *testing.T) {
	b := newBank(t)
	b.named("anna.k", "Anna Keller", "Advisor")
	m := b.customer(email(1))
	for range 10 {
		b.rename(m, m, "Anna Keller").want(t, 409, reserved)
	}
	b.rename(m, m, "Anna Keller").want(t, 429, "rate_limits_m.exceeded")
	b.rename(m, m, "Peter Müller").want(t, 429, "rate_limits_m.exceeded") // otherwise the refusal would say the same
}

func TestUpdate_ParallelRenames(t *testing.T) {
	b := newBank(t)
	b.named("anna.k", "Anna Keller", "Advisor")
	m := b.customer(email(1))
	var workers sync.WaitGroup
	statuses := make([]int, 50)
	for i := range statuses {
		name := fmt.Sprintf("Peter Müller %d", i)
		if i%10 == 0 {
			name = "Anna Keller"
		}
		workers.Go(func() { statuses[i] = b.rename(m, m, name).Status })
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
	if n := b.audited("users.update", m.id); n != 45 {
		t.Errorf("%d audit entries, want 45", n)
	}
	if got := b.call(m.token, "GET", m.path(""), nil).text("display_name"); !strings.HasPrefix(got, "Peter Müller ") {
		t.Errorf("the name is %q", got)
	}
}

func TestRegister_TakesADisplayName(t *testing.T) {
	b := newBank(t)
	in := registration("email", email(1))
	in["display_name"] = " Anna Müller "
	r := b.call("key", "POST", registerPath, in).want(t, 201, "")
	people, err := b.service.People(t.Context(), []string{r.text("user_id")})
	if err != nil || people[r.text("user_id")].DisplayName != "Anna Müller" {
		t.Errorf("got %v, %v", people, err)
	}
	in = registration("email", email(2))
	in["display_name"] = "\u202e"
	b.call("key", "POST", registerPath, in).want(t, 400, "common.invalid_input")
}

func TestList_FindsDisplayNames(t *testing.T) {
	b := newBank(t)
	clerk := b.personnel()
	for i, name := range []string{"Zoë Müller", "anna Muller", "Émile Blanc"} {
		b.named(email(i), name, "Customer")
	}
	names := func(query string) (found []string) {
		r := b.call(clerk.token, "GET", "/v1/users?"+query, nil).want(t, 200, "")
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
