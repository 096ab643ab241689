package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/store/testenv"
)

// writeFile writes a file for a test and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDuplicates_AreShownBeforeACustomerIsCreated(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	existing := s.newCustomer(admin, "Rosmarie", "Zgraggen")
	v := signedInAt(t, s, desk, firstAdmin, "/customers?new=1")
	v.write(`input[name=first_name]`, "Rosmary")
	v.write(`input[name=last_name]`, "Zgragen")
	v.write(`input[name=email]`, "rosmary@example.ch")
	v.save()
	v.see("Is this customer new?")
	v.until(`document.querySelector('.compare mark') && document.querySelector('.candidate a').getAttribute('href') === '/customers/` + existing + `'`)
	v.until(`document.querySelector('.duplicates > .actions button:last-child').disabled`)
	v.clickText("Back to the form")
	v.until(`document.querySelector('input[name=first_name]').value === 'Rosmary'`)
	v.save()
	v.clickText("Two persons")
	v.until(`!document.querySelector('.duplicates > .actions button:last-child').disabled`)
	v.click(`.duplicates > .actions button:last-child`)
	v.until(`document.querySelector('h1').innerText === 'Rosmary Zgragen' && !document.querySelector('dialog')`)
	body := map[string]any{"first_name": "Rosmarie", "last_name": "Zgraggen", "customer_id": existing}
	if found := s.call(admin, "POST", "/v1/customers/duplicates", body)["candidates"].([]any); len(found) != 0 {
		t.Errorf("two persons are still candidates: %v", found)
	}
}

func TestImport_IsTriedAndThenDone(t *testing.T) {
	s := newServer(t)
	v := signedInAt(t, s, desk, firstAdmin, "/customers")
	v.clickText("Import")
	v.until(`location.pathname === '/imports'`)
	v.chooseFile(`#import-file`, writeFile(t, "customers.csv", "external_id;first_name;last_name;email\r\nK-1;Nora;Weber;nora@example.ch\r\nK-2;;;none\r\n"))
	v.clickText("Try")
	v.see("The trial has ended. Nothing has changed.")
	v.until(`document.querySelector('[role=progressbar]').getAttribute('aria-valuenow') === '100'`)
	v.click(`.notice button`)
	v.gone(`.notice`)
	v.see("Download the rejected and skipped rows")
	if total := s.call(s.token(firstAdmin), "GET", "/v1/customers?search.last_name=weber", nil)["total"]; total != 1.0 {
		t.Errorf("%v customers were created, want 1", total)
	}
	v.open("/imports")
	v.until(`document.querySelectorAll('table.data tbody tr').length === 2`)
}

func TestScreening_AListIsLoadedAndANameIsCompared(t *testing.T) {
	s := newServer(t)
	v := signedInAt(t, s, desk, firstAdmin, "/screening/check")
	v.write(`input[name=name]`, "Sergej Lawrow")
	v.click(`form button[type=submit]`)
	v.see("No list is loaded")
	v.open("/screening/lists")
	v.clickText("Load a list")
	v.write(`dialog input[name=name]`, "Sample")
	v.chooseFile(`#screening-file`, writeFile(t, "targets.simple.csv",
		"id,schema,name,aliases,birth_date,countries,program_ids\nQ58217,Person,Sergey Lavrov,Сергей Лавров,1950-03-21,ru,EU-UKR\n"))
	v.save()
	v.seeMessage("Sample has 1 entries")
	v.open("/screening/check")
	v.write(`input[name=name]`, "Lawrow Sergej")
	v.click(`form button[type=submit]`)
	v.until(`document.querySelector('.candidate')?.getAttribute('aria-label').includes('Lav') && document.querySelector('.candidate mark')`)
	v.see("Searched: Sample")
	v.open("/screening/lists")
	v.click(`td button[aria-label="Remove Sample"]`)
	v.click(`dialog button.danger`)
	v.see("No list is loaded")
}

// loadHit loads a list with one name, and waits until a customer who is like it has a hit.
func (v *visitor) loadHit(name string) {
	v.t.Helper()
	v.open("/screening/lists")
	v.clickText("Load a list")
	v.write(`dialog input[name=name]`, "Sample")
	v.chooseFile(`#screening-file`, writeFile(v.t, "targets.simple.csv",
		"id,schema,name,aliases,birth_date,countries,program_ids\nQ2,Person,"+name+",Rosy Z.;Росмари Цграгген,1980-02-29,ch,TEST\n"))
	v.save()
	v.seeMessage("Sample has 1 entries")
	admin := v.server.token(firstAdmin)
	testenv.Wait(v.t, "the comparison in the background to find a hit", func() bool {
		return v.server.call(admin, "GET", "/v1/screening/hits", nil)["total"] == 1.0
	})
}

func TestHits_ADismissalNeedsAReason(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	s.newCustomer(admin, "Rosmarie", "Zgraggen")
	v := signedIn(t, s, desk, firstAdmin)
	v.loadHit("Rosmary Zgragen")
	v.open("/screening")
	v.clickText("Rosmarie Zgraggen")
	v.until(`document.querySelector('.compare mark')`)
	v.click(`.hit-reasons button`)
	v.click(`form button[type=submit]`)
	v.see("Dismissed")
}

// A confirmation waits for a second person. The proposer cannot be that person, and the case of the customer shows the hit.
func TestHits_AConfirmationNeedsASecondPerson(t *testing.T) {
	s := newServer(t)
	s.waitingCase(s.token(firstAdmin), "Rosmarie", "Zgraggen")
	v := signedIn(t, s, look{width: 1280, height: 900, dark: true}, firstAdmin)
	v.loadHit("Rosmary Zgragen")
	v.picture("lists-dark")
	v.open("/review")
	v.until(`document.querySelector('[aria-label="1 sanctions hit"]')`)
	v.picture("queue-dark")
	v.click(`table.data .row-link`)
	v.see("Hits on sanctions lists")
	v.picture("case-dark")
	v.clickText("Rosmary Zgragen")
	v.until(`document.querySelector('.compare mark')`)
	v.picture("hit-dark")
	v.choose(`select[name=decision]`, "confirmed")
	v.write(`textarea[name=reason]`, "The same passport.")
	v.click(`form button[type=submit]`)
	v.see("Waits for a second person")
	v.until(`[...document.querySelectorAll('select[name=decision] option')].map((one) => one.value).join() === 'open'`)
	v.picture("hit-pending-dark")

	second := signedInAt(t, s, look{width: 360, height: 740}, s.newPerson("Advisor"), "/screening")
	second.see("Rosmary Zgragen")
	second.picture("hits-narrow")
	second.clickText("Rosmarie Zgraggen")
	second.see("The same passport.")
	second.picture("hit-pending-narrow")
	second.write(`textarea[name=reason]`, "Compared again.")
	second.click(`form button[type=submit]`)
	second.until(`document.querySelector('h1').parentElement.innerText.includes('Confirmed')`)
	second.picture("hit-confirmed-narrow")
	second.open("/screening/lists")
	second.see("Sample")
	second.picture("lists-narrow")
	second.open("/screening/check")
	second.write(`input[name=name]`, "Росмари Цграгген")
	second.click(`form button[type=submit]`)
	second.until(`document.querySelector('.candidate mark')`)
	second.picture("check-narrow")
}
