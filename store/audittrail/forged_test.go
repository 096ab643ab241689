package audittrail_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// bothForms returns a signed export with entries of both forms, and the public key.
func bothForms(t *testing.T) (text, key string) {
	t.Helper()
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	insertForm1(t, o, db)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: "beat", Action: "access.denied", RecType: "roles", RecID: "ä\u2028<\x01\"", Kind: "denial",
			Detail: `{"count":2}`, Origin: &store.Origin{Session: "s", Network: "2001:db8::/48", RequestID: "q"}})
		tx.Audit(store.AuditEntry{Actor: "anna", Action: "roles.update", RecType: "roles", RecID: "r1"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return export(t, storetest.Source(o), 1), db.ExportKey()
}

// forgedMembers returns exports in which one member of a line has another value, is missing, occurs twice or has a second spelling.
func forgedMembers(t *testing.T, text string) map[string]string {
	t.Helper()
	forged := map[string]string{}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &members) != nil {
			continue // behind the last line
		}
		if head := members["head"]; head != nil {
			if err := json.Unmarshal(head, &members); err != nil {
				t.Fatal(err)
			}
			delete(members, "head")
		}
		for name, value := range members {
			was := fmt.Sprintf("%q:%s", name, value)
			for _, now := range []string{`""`, `"x"`, `null`, `0`, `1`, `7`, `[]`, `{}`, `"1970-01-01T00:00:00.000Z"`, `"{\"count\":3}"`, string(value) + " ",
				strings.Replace(string(value), `"`, `"\u0061`, 1), strings.Replace(string(value), `a`, `\u0061`, 1), strings.Replace(string(value), `=="`, `\n=="`, 1)} {
				if now != string(value) {
					put(forged, lines, i, was, fmt.Sprintf("%q:%s", name, now))
				}
			}
			put(forged, lines, i, was+",", "")
			put(forged, lines, i, ","+was, "")
			put(forged, lines, i, was, was+","+was)
			put(forged, lines, i, was, was+`,"more":1`)
			put(forged, lines, i, was, fmt.Sprintf("%q:%s", strings.ToUpper(name), value))
		}
	}
	return forged
}

func put(forged map[string]string, lines []string, i int, was, now string) {
	changed := append([]string(nil), lines...)
	if changed[i] = strings.Replace(lines[i], was, now, 1); changed[i] != lines[i] {
		forged[fmt.Sprintf("line %d: %s for %s", i+1, now, was)] = strings.Join(changed, "")
	}
}

// No member of an entry or a head can be forged, also not one that the hash of form 1 does not cover.
func TestVerifyExport_FindsEachForgedMember(t *testing.T) {
	text, key := bothForms(t)
	if r, err := audittrail.VerifyExport(strings.NewReader(text), key); err != nil || r.To != 5 {
		t.Fatalf("got %+v, %v", r, err)
	}
	forged := forgedMembers(t, text)
	if len(forged) < 1000 {
		t.Fatalf("only %d forged exports", len(forged))
	}
	for name, one := range forged {
		if _, err := audittrail.VerifyExport(strings.NewReader(one), key); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

// Every change of a byte is found, apart from the ends of lines, which have no meaning.
func TestVerifyExport_FindsEachChangedByte(t *testing.T) {
	text, key := bothForms(t)
	meaning := func(text string) string { return strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n") }
	for i := range text {
		before, at, after := text[:i], text[i], text[i+1:]
		for _, changed := range []string{
			before + after, before + " " + after, before + string([]byte{at ^ 1}) + after, before + string([]byte{at ^ 0x20}) + after,
			before + string([]byte{at, at}) + after, before + "\r" + text[i:], before + " " + text[i:], before + "\x00" + text[i:], before,
		} {
			if meaning(changed) == meaning(text) {
				continue
			}
			if _, err := audittrail.VerifyExport(strings.NewReader(changed), key); err == nil {
				t.Fatalf("a change of byte %d passes: %.60q instead of %.60q", i, changed[i:], text[i:])
			}
		}
	}
}

// verifyInJavaScript verifies exports with the code of the console, and prints which of them it accepts.
const verifyInJavaScript = `
const { verifyExport } = await import(process.argv[1]);
let input = '';
for await (const part of process.stdin) input += part;
const { texts, keys } = JSON.parse(input);
const accepted = [];
for (const text of texts) accepted.push(await verifyExport(text, keys).then(() => true, (error) => { if (!error.reason) throw error; return false; }));
console.log(JSON.stringify(accepted));`

func TestVerifyExport_TheConsoleFindsTheSame(t *testing.T) {
	testenv.Need(t, testenv.Full)
	text, key := bothForms(t)
	names, texts := []string{"the export"}, []string{text}
	for name, one := range forgedMembers(t, text) {
		names, texts = append(names, name), append(texts, one)
	}
	input, err := json.Marshal(map[string]any{"texts": texts, "keys": []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	script := osexec.Command(testenv.Tool(t, "node"), "--input-type=module", "-e", verifyInJavaScript, "file://"+filepath.Join(testenv.Root(), "web", "app", "audit_proof.js"))
	script.Stdin = bytes.NewReader(input)
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*osexec.ExitError).Stderr)
	}
	var accepted []bool
	if err := json.Unmarshal(out, &accepted); err != nil || len(accepted) != len(texts) {
		t.Fatalf("got %d answers, %v", len(accepted), err)
	}
	for i, ok := range accepted {
		if ok != (i == 0) {
			t.Errorf("%s: accepted is %v", names[i], ok)
		}
	}
}
