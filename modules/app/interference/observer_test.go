package interference_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"kontor/server/access"
	"kontor/server/endpoint"
)

// The exceptions: what may differ in the answers to the others. All else must be equal.
var (
	// ownRecords is how staff see the attacker in lists: rows about the records of the attacker come and go with what the attacker does, and
	// totals count them. The search over all types is observed for an id only: it has at most 20 rows of a type, and a hundred records of the
	// attacker with the same name come first; lists have all.
	ownRecords = regexp.MustCompile(`<(attack|attacker\.[a-z]+|accomplice\.[a-z]+)>`)

	// shared is what a customer shares with the attacker: the attacker may open a chat with anyone, and write to it.
	shared = regexp.MustCompile(`^/v1/(chats|notifications|events)`)

	// unseen are the endpoints whose answers are about all requests, including the attacker's: the audit trail, the log of requests, the
	// change feed, the count of notifications, and the explanation of rights. The access review has the last use of a right. Streams have
	// no end; the type stream compares one. The list of sample bills is the same for all.
	unseen = regexp.MustCompile(`^/v1/(audit|requests|notifications/(sse|unread-count)|events|rbac/explain|rbac/review$|invoices/bills)`)

	// decided are the members of a hit about the attacker that are the work of the bank: what the attacker does must not change them.
	decided = []string{"id", "status", "decision", "reason", "proposed_by", "decided_by"}
)

// view is what one request shows, a member a line.
type view struct {
	request string
	lines   []string
}

// see returns what an answer shows to a person, with names for ids, without the exceptions.
func (b *bank) see(s step, got answer) view {
	v := view{request: s.String(), lines: []string{fmt.Sprintf("status %d", got.status)}}
	text := fractions.ReplaceAllString(b.unfill(got.body), "Z")
	var content any
	if json.Unmarshal([]byte(text), &content) != nil {
		v.lines = append(v.lines, fmt.Sprintf("content %q", text))
		return v
	}
	e := exceptions{staff: s.by == admin || s.by == "reviewer" || s.by == "second", path: s.path}
	v.flatten("", e.without(content))
	slices.Sort(v.lines)
	return v
}

// fractions are the parts of a time that depend on how many transactions a second has had.
var fractions = regexp.MustCompile(`\.[0-9]{3}Z`)

// volatile are members that differ from server to server.
var volatile = []string{"cursor", "next_cursor", "sent_at"}

// exceptions removes the exceptions from an answer.
type exceptions struct {
	staff bool
	path  string
}

// excepts reports whether a row is an exception.
func (e exceptions) excepts(row any) bool {
	text, _ := json.Marshal(row)
	mine := ownRecords.MatchString(unescape(string(text)))
	return mine && (e.staff || shared.MatchString(e.path) && strings.Contains(unescape(string(text)), "<"+attackName+">"))
}

// unescape returns JSON with the brackets of names.
func unescape(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
}

func (e exceptions) without(value any) any {
	switch value := value.(type) {
	case []any:
		kept := []any{}
		for _, row := range value {
			rest := e.without(row) // a group may have rows of others, too
			if object, _ := row.(map[string]any); object["id"] == attackerHit || !e.excepts(rest) && !emptied(row, rest) {
				kept = append(kept, rest)
			}
		}
		return kept
	case map[string]any:
		if value["id"] == attackerHit {
			return decisionOf(value)
		}
		return e.withoutMembers(value)
	}
	return value
}

func (e exceptions) withoutMembers(object map[string]any) map[string]any {
	kept := map[string]any{}
	for name, member := range object {
		if !slices.Contains(volatile, name) && !ownRecords.MatchString(name) {
			kept[name] = e.without(member)
		}
	}
	if e.staff {
		delete(kept, "total_unfiltered")
	}
	rows, isList := object["data"].([]any)
	if total, counted := object["total"].(float64); isList && counted {
		data, _ := kept["data"].([]any)
		kept["total"] = total - float64(len(rows)-len(data))
	}
	return kept
}

// emptied reports whether all rows of a group are exceptions.
func emptied(before, after any) bool {
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	rowsBefore, _ := was["rows"].([]any)
	rowsAfter, _ := is["rows"].([]any)
	return len(rowsBefore) > 0 && len(rowsAfter) == 0
}

const attackerHit = "<attacker.hit>"

// decisionOf returns what of a hit about the attacker is the work of the bank.
func decisionOf(hit map[string]any) map[string]any {
	decision := map[string]any{}
	for _, name := range decided {
		decision[name] = hit[name]
	}
	return decision
}

// flatten adds a line for each value. The rows of a list have no number: those of the same moment may come in any order.
func (v *view) flatten(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			v.flatten(path+"."+name, value[name])
		}
	case []any:
		v.lines = append(v.lines, fmt.Sprintf("%s has %d", path, len(value)))
		for _, row := range value {
			if _, isObject := row.(map[string]any); !isObject {
				v.flatten(path+"[]", row)
				continue
			}
			text, _ := json.Marshal(row)
			v.lines = append(v.lines, path+"[] "+unescape(string(text)))
		}
	default:
		v.lines = append(v.lines, fmt.Sprintf("%s = %v", path, value))
	}
}

// difference returns the lines in which two views differ, those of calm with - and those of attacked with +; empty: none.
func difference(calm, attacked view) string {
	without, with := missing(calm.lines, attacked.lines), missing(attacked.lines, calm.lines)
	if len(without)+len(with) == 0 {
		return ""
	}
	text := calm.request
	for i := range min(max(len(without), len(with)), 4) {
		switch {
		case i >= len(without):
			text += "\n  + " + with[i]
		case i >= len(with):
			text += "\n  - " + without[i]
		default:
			minus, plus := members(without[i], with[i])
			text += "\n  - " + minus + "\n  + " + plus
		}
	}
	return text
}

// missing returns the lines that others lack, each as often as it is missing.
func missing(lines, others []string) (all []string) {
	count := map[string]int{}
	for _, line := range others {
		count[line]++
	}
	for _, line := range lines {
		if count[line]--; count[line] < 0 {
			all = append(all, line)
		}
	}
	return all
}

// members returns what differs in two lines: of two rows their members.
func members(a, b string) (string, string) {
	path, textA, isRow := strings.Cut(a, "[] ")
	_, textB, _ := strings.Cut(b, "[] ")
	var rowA, rowB map[string]any
	if !isRow || json.Unmarshal([]byte(textA), &rowA) != nil || json.Unmarshal([]byte(textB), &rowB) != nil {
		return a, b
	}
	for name, value := range rowA {
		if fmt.Sprint(rowB[name]) == fmt.Sprint(value) && name != "id" {
			delete(rowA, name)
			delete(rowB, name)
		}
	}
	return fmt.Sprintf("%s[] %v", path, rowA), fmt.Sprintf("%s[] %v", path, rowB)
}

// parameters are the records by which the observer fills the paths of the endpoint table. Others have an unknown id.
var parameters = []struct {
	prefix string
	values []string
}{
	{"/v1/customers/{id}/kyc/documents", []string{"<victim.customer>"}},
	{"/v1/customers/{id}", []string{"<victim.customer>", "<bystander.customer>"}},
	{"/v1/customers/{customer_id}/tasks/{id}", []string{"<victim.customer>|<victim.task>"}},
	{"/v1/customers/{customer_id}", []string{"<victim.customer>"}},
	{"/v1/users/{id}", []string{"<victim.user>", "<reviewer.user>"}},
	{"/v1/personas/{persona_id}", []string{"<victim.persona>"}},
	{"/v1/payers/{id}", []string{"<victim.payer>"}},
	{"/v1/chats/{id}", []string{"<victim.chat>"}},
	{"/v1/inbox/{id}", []string{"<victim.chat>"}},
	{"/v1/files/{id}", []string{"<victim.file>"}},
	{"/v1/screening/hits/{id}", []string{"<bystander.hit>"}},
	{"/v1/imports/{id}", []string{"<import>"}},
	{"/v1/erasures/{id}", []string{"<erasure>"}},
}

// observed returns what is read at the end: every endpoint that a role may read, by the table, and a few searches.
func observed(table []endpoint.Endpoint) (all []step) {
	for _, by := range []struct{ name, role string }{{admin, ""}, {"reviewer", access.Advisor}, {"victim", access.Customer}} {
		for _, e := range table {
			mayRead := by.role == "" || slices.Contains(e.Roles, by.role)
			if e.Method != http.MethodGet || !e.Access.TakesBearer() || !mayRead || unseen.MatchString(e.Path) {
				continue
			}
			for _, path := range filled(e.Path) {
				if !strings.Contains(e.Path, "{") {
					path += "?limit=100"
				}
				all = append(all, step{by: by.name, method: e.Method, path: path})
			}
		}
	}
	email := emailOf("victim")
	for _, query := range []string{"search?q=<victim.customer>", "customers?limit=100&q=Muster", "customers?limit=100&q=Listowa", "customers?limit=100&search.email=" + email} {
		all = append(all, request("reviewer", "GET", "/v1/"+query, ""))
	}
	return append(all,
		request("reviewer", "POST", "/v1/customers/duplicates", `{"first_name":"Anna","last_name":"Muster","email":"`+email+`"}`),
		request("bystander", "GET", "/v1/customers", ""),
		request("second", "GET", "/v1/screening/hits", ""),
		request("second", "GET", "/v1/kyc/cases", ""))
}

var parameter = regexp.MustCompile(`\{\w+\}`)

// filled returns a path with ids in place of its parameters.
func filled(path string) []string {
	if !strings.Contains(path, "{") {
		return []string{path}
	}
	for _, p := range parameters {
		if !strings.HasPrefix(path, p.prefix) {
			continue
		}
		var all []string
		for _, values := range p.values {
			one := path
			for value := range strings.SplitSeq(values, "|") {
				at := parameter.FindString(one)
				one = strings.Replace(one, at, value, 1)
			}
			all = append(all, parameter.ReplaceAllString(one, "<unknown>"))
		}
		return all
	}
	return []string{parameter.ReplaceAllString(path, "<unknown>")}
}
