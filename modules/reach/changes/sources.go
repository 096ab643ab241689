package changes

import (
	"cmp"
	"slices"
	"strings"

	"kontor/modules/kit/hit"
	"kontor/modules/kit/personal"
	"kontor/server/access"
)

// The verbs of event types.
const (
	created = "created"
	updated = "updated"
	deleted = "deleted"
	erased  = "erased"
)

// source says how the audit entries of one type become events.
type source struct {
	RecType string            // of the entries
	Of      access.RecordType // of the record that events name; entries of a part have another type
	Get     string            // the endpoint that shows the record, if it is not Of.Shown: readers need the grant on it
	Verbs   []string          // of the types of events
	Created []string          // actions that create a record, if the entry shows no state before
	Part    string            // for parts of a record: the verb of every event
	// ByType is set for records whose only right is that on their type.
	ByType bool
	// Decided is set for records about which their module decides, see [Service.SetDecider].
	Decided bool
	Why     string // why entries of this type are no events
}

// sources lists the types of all audit entries about records. Tests compare it with the records that the trail covers, and with
// what every endpoint writes. A type of record that an endpoint shows, and that is not in the table, has the events of [plain].
var sources = complete([]source{
	{RecType: "customer_distinctions", Why: "whom the bank has compared is its own affair"},
	{RecType: "kyc_documents", Why: "the submission is an event of the customer"},
	{RecType: "kyc_changes", Why: "the change of state is an event of the customer"},
	{RecType: "imports", Why: "the records that an import creates have events of their own"},
	{RecType: "kyc_files", Of: access.Customers, Get: "GET /v1/customers/{id}/kyc/files", Part: "files_changed"},
	{RecType: "chat_files", Of: access.Chats, Get: "GET /v1/chats/{id}/files", Part: "files_changed"},
	{RecType: "task_files", Of: access.Tasks, Get: "GET /v1/customers/{customer_id}/tasks/{id}/files", Part: "files_changed"},
	{RecType: "kyc_decisions", Why: "a pending decision must not show; a confirmed one is an event of the customer"},
	{RecType: "relationships", Of: access.Customers, Get: "GET /v1/customers/{id}/relationship", Part: "relationship_changed"},
	{RecType: "legal_holds", Of: access.Customers, Get: "GET /v1/customers/{id}/legal-hold", Part: "legal_hold_changed"},
	{RecType: "chat_messages", Of: access.Chats, Get: "GET /v1/chats/{id}/messages", Part: "message_posted"},
	{RecType: "inbox_threads", Why: "the work of the bank on a chat, which its participants must not see"},
	{RecType: "inbox_notes", Why: "internal notes, which participants of the chat must not see"},
	{RecType: "tasks", Of: access.Tasks, Verbs: []string{created, updated, deleted, erased},
		Created: []string{"tasks.create"}},
	{RecType: "profiles", Of: access.Profiles, Get: "GET /v1/profile", Verbs: []string{updated, erased}},
	{RecType: "users", Of: access.Users, Verbs: []string{created, updated, erased}, Created: []string{"users.create"}},
	{RecType: "invitations", Why: "the acceptance is an event of the new user"},
	{RecType: "user_roles", Of: access.Users, Part: "roles_changed"},
	{RecType: "credentials", Of: access.Credentials, Get: "GET /v1/users/{id}/credentials", Verbs: []string{created, updated, deleted},
		Created: []string{"credentials.create"}},
	{RecType: "factors", Of: access.Factors, Get: "GET /v1/users/{id}/factors", Verbs: []string{created, updated, deleted}, Created: []string{"factors.enrol"}},
	{RecType: "identities", Of: access.Identities, Get: "GET /v1/users/{id}/identities", Verbs: []string{created, updated, deleted},
		Created: []string{"identities.create"}},
	{RecType: "service_accounts", Of: access.Services, Verbs: []string{created, updated},
		Created: []string{"service_accounts.create"}},
	{RecType: "service_tokens", Of: access.Services, Get: "GET /v1/service-accounts/{id}/tokens", Part: "tokens_changed"},
	{RecType: "api_keys", Of: access.APIKeys, Get: "GET /v1/api-keys", Verbs: []string{created, updated}, Created: []string{"api_keys.create"}},
	{RecType: "webhooks", Of: access.Webhooks, Verbs: []string{created, updated, deleted}, Created: []string{"webhooks.create"}},
	{RecType: "roles", Of: access.Roles, Verbs: []string{created, updated, deleted},
		Created: []string{"rbac.roles.create", "rbac.seed"}, ByType: true},
	{RecType: "grants", Of: access.Grants, Get: "GET /v1/rbac/grants", Verbs: []string{created, deleted},
		Created: []string{"rbac.grants.create", "rbac.seed"}, ByType: true},
	{RecType: "record_types", Why: "they are names for grants, which have events"},
	{RecType: "access_reviews", Why: "the rights that a review removes have events"},
	{RecType: "rate_limits", Of: access.RateLimits, Get: "GET /v1/rate-limits", Verbs: []string{created, updated, deleted},
		Created: []string{"rbac.rate_limits.set", "rbac.seed"}, ByType: true},
	{RecType: "screening_lists", Why: "lists are the operator's, and only administrators read them"},
	{RecType: "screening_hits", Of: hit.Type, Get: "GET /v1/screening/hits/{id}", Verbs: []string{created, updated}, Created: []string{"screening.hit_opened"}, Decided: true},
	{RecType: "screening_checks", Why: "no event may say whom the bank checks"},
	{RecType: "erasures", Why: "the erased records have events of their own"},
	{RecType: "sessions", Why: "sign-ins are security events, which the export of the audit trail reports"},
	{RecType: "passwords", Why: "no endpoint shows passwords, and their changes are security events"},
	{RecType: "signing_keys", Why: "no record of the API: clients read the public keys when a token names another"},
	{RecType: "notifications", Why: "they are messages about changes that have events"},
	{RecType: "deliveries", Why: "they are messages about changes that have events"},
	{RecType: "invoices", Why: "invoices are read and not stored"},
	{RecType: "audit", Why: "they are about the trail itself"},
	{RecType: "database", Why: "they are about the database as a whole"},
	{RecType: "", Why: "they are about no record"},
})

// plain returns the source of records that are created, changed and erased.
func plain(t access.RecordType) source {
	return source{RecType: t.Name, Of: t, Verbs: []string{created, updated, erased}, Created: []string{t.Name + ".create"}}
}

func complete(table []source) []source {
	for _, t := range access.RecordTypes() {
		if t.Shown != "" && !slices.ContainsFunc(table, func(s source) bool { return s.RecType == t.Name }) {
			table = append(table, plain(t))
		}
	}
	for i := range table {
		table[i].Get = cmp.Or(table[i].Get, table[i].Of.Shown)
	}
	return table
}

var sourceOf = func() map[string]*source {
	m := make(map[string]*source, len(sources))
	for i := range sources {
		m[sources[i].RecType] = &sources[i]
	}
	return m
}()

// internal are actions that change how a record is stored, and nothing that the API shows to others than the actor.
var internal = []string{"audit.digest", "keys.reseal", "credentials.rekey", "credentials.look_alike", "api_keys.rehash", "service_tokens.rehash",
	"files.receive", "files.infected"}

// classify returns the type of the event of an entry, and its source. before and after say whether the entry shows the record
// before and after. ok is false if the entry is no event.
func classify(recType, action string, before, after bool) (eventType string, from *source, ok bool) {
	from, known := sourceOf[recType]
	switch {
	case !known || from.Why != "" || !before && !after || slices.Contains(internal, action):
		return "", nil, false
	case from.Part != "" && action == personal.Action:
		return from.Of.Name + "." + updated, from, true
	case from.Part != "":
		return from.Of.Name + "." + from.Part, from, true
	}
	return from.Of.Name + "." + from.verb(action, before, after), from, true
}

func (f *source) verb(action string, before, after bool) string {
	switch {
	case action == personal.Action && slices.Contains(f.Verbs, erased):
		return erased
	case !after:
		return deleted
	case !before && slices.Contains(f.Created, action):
		return created
	}
	return updated
}

// Decided reports whether entries of a type are events, or are left out with a reason.
func Decided(recType string) bool { return sourceOf[recType] != nil }

// verbs returns the verbs of the events of the source.
func (f *source) verbs() []string {
	if f.Part != "" {
		return []string{f.Part}
	}
	return f.Verbs
}

// Types returns the types of events in alphabetical order.
func Types() []string {
	var types []string
	for _, s := range sources {
		for _, verb := range s.verbs() {
			types = append(types, s.Of.Name+"."+verb)
		}
	}
	slices.Sort(types)
	return types
}

// AllOf ends a pattern for all types of events of one type of record: customers.*
const AllOf = ".*"

// ValidPattern reports whether a text is a type of events or a pattern for all types of events of one type of record.
func ValidPattern(text string) bool {
	records, all := strings.CutSuffix(text, AllOf)
	return slices.ContainsFunc(Types(), func(known string) bool {
		return known == text || all && strings.HasPrefix(known, records+".")
	})
}

// matches reports whether a type is among patterns. Without patterns, every type is.
func matches(patterns []string, eventType string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		records, all := strings.CutSuffix(pattern, AllOf)
		return pattern == eventType || all && strings.HasPrefix(eventType, records+".")
	})
}
