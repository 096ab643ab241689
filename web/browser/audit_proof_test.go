package browser_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// giveFile makes a file of a text and chooses it in the file field.
func (v *visitor) giveFile(text string) {
	v.t.Helper()
	v.eval(`(() => {
		const chosen = new DataTransfer();
		chosen.items.add(new File([` + strconv.Quote(text) + `], 'audit.jsonl'));
		const field = document.querySelector('main input[type=file]');
		field.files = chosen.files;
		field.dispatchEvent(new Event('change', { bubbles: true }));
	})()`)
}

// An auditor exports the trail, signed, and verifies the file in the browser. A changed, cut or reordered file is rejected.
func TestAudit_ASignedExportIsVerifiedInTheBrowser(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	admin := s.token(firstAdmin)
	for range 3 {
		s.newCustomer(admin, "Änne", "Ausfuhr")
	}
	v := signedInAt(t, s, desk, firstAdmin, "/admin/audit")
	v.see(v.text("audit.intact"))
	v.eval(`const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.exported = text; }); return make.call(URL, blob); }`)
	v.clickText(v.text("audit_export.title"))
	v.examine(view{name: "audit_export", drawn: `dialog form`})
	v.write(`dialog input[name=from]`, "2001-01-01")
	v.click(`dialog button[type=submit]`)
	v.gone(`dialog`)
	v.until(`window.exported?.endsWith('}\n')`)
	file := ask[string](v, `window.exported`)
	lines := strings.SplitAfter(strings.TrimSuffix(file, "\n"), "\n")
	lines[len(lines)-1] += "\n"

	v.clickText(v.text("audit_proof.title"))
	v.until(`document.querySelector('main textarea').value.length === 44`)
	v.giveFile(file)
	v.see(v.text("audit_proof.good"))
	v.see(v.text("audit_proof.same"))
	v.examine(view{name: "audit_proof", drawn: `.proof`})
	v.picture("audit_proof")

	joined := func(parts ...[]string) string {
		var all strings.Builder
		for _, part := range parts {
			all.WriteString(strings.Join(part, ""))
		}
		return all.String()
	}
	n := len(lines)
	const good = `document.querySelector('main .notice.good') && !document.querySelector('main .notice.bad')`
	for name, wrong := range map[string]string{
		"changed":   strings.Replace(file, `"action":"customers.create"`, `"action":"customers.delete"`, 1),
		"cut":       joined(lines[:n-3]),
		"reordered": joined(lines[:3], lines[4:5], lines[3:4], lines[5:]),
		"removed":   joined(lines[:3], lines[4:]),
		"last":      joined(lines[:n-2], lines[n-1:]),
	} {
		v.until(good)
		v.giveFile(wrong)
		v.until(`document.querySelector('main .notice.bad') && !document.querySelector('main .notice.good')`)
		if name == "changed" {
			v.picture("audit_not_proven")
		}
		v.giveFile(file) // so that the next file is not judged by the answer to this one
	}
	other := newServer(t)
	key := other.call(other.token(firstAdmin), http.MethodGet, "/v1/audit/status", nil)["export_keys"].([]any)[0].(string)
	v.until(good)
	v.write(`main textarea`, key)
	v.giveFile(file)
	v.until(`document.querySelector('main .notice.bad') && !document.querySelector('main .notice.good')`)
}

// Others than auditors have neither the screen nor the export.
func TestAudit_TheExportIsForAuditors(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/admin/audit/verify")
	v.expect("403")
	v.until(`document.querySelector('main .notice.bad, main .empty') && !document.querySelector('main input[type=file]')`)
}
