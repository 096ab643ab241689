package specification_test

import (
	"fmt"
	"strings"
	"testing"

	"kontor/store"
)

const (
	get    = "GET /v1/notifications/{row}"
	read   = "PATCH /v1/notifications/{row}/read"
	remove = "DELETE /v1/notifications/"
)

// notified triggers n notifications of anna about a new record. The names rec and parent are those of the last one, row is its copy.
func (b *bank) notified(t *testing.T, n int, members string) {
	t.Helper()
	b.names["rec"] = store.NewID()
	if !strings.Contains(members, "user_ids") {
		members += `,"user_ids":["{anna}"]`
	}
	for range n {
		b.send(t, do("key", "POST /v1/notifications/trigger", `{"rec_type":"customers","rec_id":"{rec}"`+members+`}`, 200).keep("parent", "notification_id"))
	}
	rows := b.page(t, "anna", "?search.rec_id={rec}&search.user_id={anna}&sort=-created_at")["data"].([]any)
	if want := min(n, 10); len(rows) != want {
		t.Fatalf("got %d rows, want %d", len(rows), want)
	}
	b.names["row"] = first(t, rows)["id"].(string)
}

// page reads a list of notifications.
func (b *bank) page(t *testing.T, as, query string) map[string]any {
	t.Helper()
	return b.send(t, do(as, "GET /v1/notifications"+query, "", 200)).JSON(t)
}

// once notifies anna and sends requests about it.
func once(members string, all ...step) func(*testing.T, *bank) {
	return func(t *testing.T, b *bank) {
		t.Helper()
		b.notified(t, 1, members)
		steps(all...)(t, b)
	}
}

// pages compares the number of rows and has_more of queries for 12 rows.
func pages(want map[string]int) func(*testing.T, *bank) {
	return func(t *testing.T, b *bank) {
		t.Helper()
		b.notified(t, 12, "")
		for query, rows := range want {
			page := b.page(t, "anna", "?search.rec_id={rec}&search.user_id={anna}"+query)
			if got := len(page["data"].([]any)); got != rows || page["total"] != 12.0 {
				t.Errorf("%s: got %d rows of %v, want %d of 12", query, got, page["total"], rows)
			}
		}
	}
}

// hiddenKeys checks that keys and templates never show.
func hiddenKeys(t *testing.T, b *bank) {
	b.notified(t, 1, `,"event":"customer_status_changed","title_key":"my.title"`)
	for _, s := range []step{do("anna", "GET /v1/notifications?search.rec_id={rec}", "", 200), do("anna", get, "", 200), do("anna", read, `{"read":true}`, 200)} {
		s.texts = []string{`!"title_key"`, `!"content_key"`}
		b.send(t, s)
	}
	for _, name := range []string{"title_key", "content_key"} {
		b.send(t, do("anna", "GET /v1/notifications?search."+name+"=x", "", 500, `"query_m.invalid_search_field"`))
	}
}

// deletesForAll deletes an event of two recipients as a caller who received nothing.
func deletesForAll(t *testing.T, b *bank) {
	b.notified(t, 1, `,"event":"customer_status_changed","user_ids":["{anna}","{advisor}"]`)
	steps(
		do("beat", remove+"{parent}", "", 200, `{"message":"Notification deleted"}`).with("Accept-Language", "de"),
		do("anna", get, "", 404),
		do("anna", "GET /v1/notifications?search.rec_id={rec}", "", 200, `"total":0`),
		do("admin", "GET /v1/notifications?search.rec_id={rec}", "", 200, `"total":0`),
		do("beat", remove+"{parent}", "", 500, `"common.database_error"`),
	)(t, b)
}

// sees counts the notifications about the last record that a caller sees with a query.
func sees(t *testing.T, b *bank, as, query string, want float64) {
	t.Helper()
	if got := b.page(t, as, "?search.rec_id={rec}"+query)["total"]; got != want {
		t.Errorf("%s%s: got %v, want %v", as, query, got, want)
	}
}

var notifications = []statement{
	{"Produces, stores and delivers notifications per recipient, including a real-time event stream; lets a recipient mark a notification read and lets a" +
		" notification be deleted logically.", deletesForAll},
	{"| user_id | uuid | recipient |", once("", do("anna", get, "", 200, `"user_id":"{anna}"`))},
	{"| event | string | event kind |", once(`,"event":"customer_status_changed"`, do("anna", get, "", 200, `"event":"customer_status_changed"`))},
	{"| title | string | see resolution rules below |", once(`,"title_key":"my.title"`, do("anna", get, "", 200, `"title":"my.title"`))},
	{"| content | string | see resolution rules below |", once(`,"content":"By hand"`, do("anna", get, "", 200, `"content":"By hand"`))},
	{"| rec_id | uuid | record the notification refers to |", once("", do("anna", get, "", 200, `"rec_id":"{rec}"`))},
	{"| rec_type | string | record type name |", once("", do("anna", get, "", 200, `"rec_type":"customers"`))},
	{"| created_at, sent_at, read_at | date-time | |", once("", do("anna", get, "", 200, `"created_at":"20`, `"sent_at":`, `"read_at":null`))},
	{"| read | boolean | |", once("", do("anna", get, "", 200, `"read":false`))},
	{"| link_url, link_text | string | present only on the list route and on stream frames |", once(`,"event":"customer_status_changed"`,
		do("anna", "GET /v1/notifications?search.rec_id={rec}", "", 200, `"link_url":"`, `"link_text":"`),
		do("anna", get, "", 200, `!"link_url"`, `!"link_text"`), do("anna", read, `{"read":true}`, 200, `!"link_url"`, `!"link_text"`))},
	{"| channels_attempted, channels_sent, channels_delivered, channels_failed | arrays | stored value is an empty array on read routes; null on stream frames |",
		once("", do("anna", get, "", 200, `"channels_attempted":[]`, `"channels_sent":[]`, `"channels_delivered":[]`, `"channels_failed":[]`))},
	{"Two stored members, `title_key` and `content_key` (translation keys), are hidden from JSON and are not filterable.", hiddenKeys},
	{"The stored title is empty on every row.", once(`,"title_key":"my.title"`, do("anna", read, `{"read":true}`, 200, `"title":""`))},
	{"The stored content holds only pre-rendered text supplied by the creator, and is empty for key-based notifications.", all(
		once(`,"content":"By hand"`, do("anna", read, `{"read":true}`, 200, `"content":"By hand"`)),
		once(`,"event":"customer_status_changed"`, do("anna", read, `{"read":true}`, 200, `"content":""`)))},
	{"| GET /v1/notifications | the push template of the event rendered with the row's metadata when one resolves; else title_key | the same template;" +
		" else stored content, then content_key |", all(
		once(`,"event":"no_such_event","title_key":"my.title","content":"By hand"`,
			do("anna", "GET /v1/notifications?search.rec_id={rec}", "", 200, `"title":"my.title"`, `"content":"By hand"`)),
		func(t *testing.T, b *bank) { // a real event with its template
			b.submits(t)
			row := first(t, b.page(t, "anna", "?search.event=customer_status_changed&search.rec_id={new}")["data"])
			single := b.send(t, do("anna", "GET /v1/notifications/"+row["id"].(string), "", 200)).JSON(t)
			if content := row["content"].(string); !strings.Contains(content, "K Y") || content == single["content"] {
				t.Errorf("the list has the content %q, the single notification %q", content, single["content"])
			}
		})},
	{"| GET /v1/notifications/{notification_id} | title_key only (template never used) | stored content if non-empty, else content_key |", all(
		once(`,"event":"customer_status_changed","title_key":"my.title","content":"By hand"`, do("anna", get, "", 200, `"title":"my.title"`, `"content":"By hand"`)))},
	{"| PATCH /v1/notifications/{notification_id}/read | raw stored title (empty) | raw stored content, untranslated |",
		once(`,"title_key":"my.title","content":"common.raw"`, do("anna", read, `{"read":true}`, 200, `"title":""`, `"content":"common.raw"`).with("Accept-Language", "de"))},
	{"link_url and link_text are filled only on the list route and in stream frames; the read-one and mark-read responses omit them.",
		once("", do("anna", get, "", 200, `!link_url`, `!link_text`))},
	{"| Notification (per recipient) | read | false, true |", once("", do("anna", get, "", 200, `"read":false`), do("anna", read, `{"read":true}`, 200, `"read":true`))},
	{"| Notification (parent) | deleted | false, true |", deletesForAll},
	{"| notification read=false | PATCH /v1/notifications/{notification_id}/read | request body member `read` present (any value) | read=true |", all(
		once("", do("anna", read, `{"read":false}`, 200, `"read":true`, `!"read_at":null`)), once("", do("anna", read, `{"read":"x"}`, 200, `"read":true`)))},
	{"| notification read=true | any route | | read=false | no route clears the flag |",
		once("", do("anna", read, `{"read":true}`, 200), do("anna", read, `{"read":false}`, 200, `"read":true`), do("anna", get, "", 200, `"read":true`))},
	{"| parent notification deleted=false | DELETE /v1/notifications/{notification_id} | a parent record with that id exists | deleted=true |", deletesForAll},

	{"All notification routes except the trigger route use bearer authentication.", steps(do("nobody", "GET /v1/notifications", "", 401),
		do("nobody", "GET /v1/notifications/{unknown}", "", 401), do("nobody", "PATCH /v1/notifications/{unknown}/read", `{"read":true}`, 401),
		do("nobody", "DELETE /v1/notifications/{unknown}", "", 401), do("nobody", "GET /v1/notifications/preferences", "", 401))},

	// The list
	{"Returns the shared list envelope: `data`, `total`, `total_unfiltered`, `has_more` always; `keys` and `metadata` only when non-empty.",
		once("", do("anna", "GET /v1/notifications?search.rec_id={rec}", "", 200, `"data":[`, `"total":1`, `"total_unfiltered":`, `"has_more":false`, `!"keys"`),
			do("anna", "GET /v1/notifications?search.rec_id={rec}&stack=read", "", 200, `"keys":["false"]`))},
	{"A caller holding `read_all` on the notification record type (for example an Administrator) sees every user's notifications; any other caller sees rows on" +
		" which they hold a read grant, whoever they belong to.", func(t *testing.T, b *bank) {
		b.notified(t, 1, "")
		sees(t, b, "admin", "", 1)
		sees(t, b, "beat", "", 0)
		b.send(t, do("admin", "POST /v1/rbac/grants", `{"user_id":"{beat}","rec_type":"notifications","rec_id":"{row}","permissions":["read"]}`, 201))
		sees(t, b, "beat", "", 1)
	}},
	{"`search.user_id` narrows the list to one user.", func(t *testing.T, b *bank) {
		b.notified(t, 1, `,"user_ids":["{anna}","{beat}"]`)
		sees(t, b, "admin", "", 2)
		sees(t, b, "admin", "&search.user_id={beat}", 1)
	}},
	{"| limit | default 10; above 100 becomes 100; zero or negative becomes 10; -1 means skip fetching data; a non-integer gives 400 |", all(
		pages(map[string]int{"": 10, "&limit=3": 3, "&limit=0": 10, "&limit=-5": 10, "&limit=-1": 0, "&limit=500": 12}),
		steps(do("anna", "GET /v1/notifications?limit=x", "", 400, `"common.invalid_input"`), do("anna", "GET /v1/notifications?limit=1.5", "", 400)))},
	{"| offset | default 0; negative becomes 0 |", pages(map[string]int{"&offset=10": 2, "&offset=-7": 10, "&offset=12": 0})},
	{"| sort | a filterable field name; prefix - for descending |", func(t *testing.T, b *bank) {
		b.notified(t, 2, "")
		up, down := b.page(t, "anna", "?search.rec_id={rec}&sort=id")["data"].([]any), b.page(t, "anna", "?search.rec_id={rec}&sort=-id")["data"].([]any)
		if up[0].(map[string]any)["id"] != down[1].(map[string]any)["id"] {
			t.Errorf("got %v and %v", up, down)
		}
	}},
	{"| stack | changes the shape of the response, see below |", once("", do("anna", "GET /v1/notifications?search.rec_id={rec}&stack=event", "", 200, `"data":{`))},
	{"| distinct | passed to the shared query layer |", func(t *testing.T, b *bank) {
		b.notified(t, 3, "")
		sees(t, b, "anna", "&distinct=rec_id", 1)
	}},
	{"| customer_id | not a filter: used only to choose the language of the rendered title and content; omitted means the nil UUID; a value that does not parse gives" +
		" 400 with code common.invalid_input |", once("",
		do("anna", "GET /v1/notifications?search.rec_id={rec}&customer_id={unknown}", "", 200, `"total":1`),
		do("anna", "GET /v1/notifications?search.rec_id={rec}&customer_id={nil}", "", 200, `"total":1`),
		do("anna", "GET /v1/notifications?customer_id=seven", "", 400, `"common.invalid_input"`))},
	{"| search.<field> | filter on a filterable field (e.g. search.read=true or false, search.user_id, search.customer_id) |", func(t *testing.T, b *bank) {
		b.notified(t, 1, `,"customer_id":"{customer}"`)
		sees(t, b, "anna", "&search.read=false&search.customer_id={customer}", 1)
		sees(t, b, "anna", "&search.read=true", 0)
	}},
	{"There is no `status` parameter.", func(t *testing.T, b *bank) {
		b.notified(t, 1, "")
		sees(t, b, "anna", "&status=read", 1)
		sees(t, b, "anna", "&_=1", 1)
	}},
	{"Filterable fields: id, customer_id, user_id, event, title, content, rec_id, rec_type, created_at, sent_at, read, read_at.", func(t *testing.T, b *bank) {
		for _, name := range []string{"id", "customer_id", "user_id", "event", "title", "content", "rec_id", "rec_type", "created_at", "sent_at", "read", "read_at"} {
			b.send(t, do("anna", "GET /v1/notifications?limit=1&sort="+name+"&search."+name+"=x", "", 200))
			b.send(t, do("anna", "GET /v1/notifications?limit=1&stack="+name, "", 200))
		}
	}},
	{"Filtering on title never matches (stored title is empty); content matches only caller-supplied pre-rendered text.", func(t *testing.T, b *bank) {
		b.notified(t, 1, `,"title_key":"my.title","content":"By hand"`)
		sees(t, b, "anna", "&search.title=my.title", 0)
		sees(t, b, "anna", "&search.content=By%20hand", 1)
	}},
	{"Stacking: with `stack` set, `data` is an object keyed by the formatted value of the stacked field (for example ?stack=read gives members `true` and `false`," +
		" each an array), and `keys` lists those group keys in the requested order.", func(t *testing.T, b *bank) {
		b.notified(t, 2, "")
		b.send(t, do("anna", read, `{"read":true}`, 200))
		page := b.page(t, "anna", "?search.rec_id={rec}&stack=-read")
		data, keys := page["data"].(map[string]any), fmt.Sprint(page["keys"])
		if len(data["true"].([]any)) != 1 || len(data["false"].([]any)) != 1 || keys != "[true false]" {
			t.Errorf("got %v with the keys %s", data, keys)
		}
	}},
	{"Without stack, `data` is an array and `keys` is absent.", once("", do("anna", "GET /v1/notifications?search.rec_id={rec}", "", 200, `"data":[`, `!"keys"`))},
	{"stack accepts the filterable field names, optionally prefixed with - (descending) and suffixed with [format].", func(t *testing.T, b *bank) {
		b.notified(t, 1, "")
		created := first(t, b.page(t, "anna", "?search.rec_id={rec}")["data"])["created_at"].(string)
		for format, want := range map[string]string{"": created[:10], "[year]": created[:4], "[YYYY-MM]": created[:7], "[2006-01-02]": created[:10], "[02.01.2006]": created[8:10] +
			"." + created[5:7] + "." + created[:4]} {
			if got := fmt.Sprint(b.page(t, "anna", "?search.rec_id={rec}&stack=-created_at"+format)["keys"]); got != "["+want+"]" {
				t.Errorf("%s: got %s, want %s", format, got, want)
			}
		}
	}},
	{"An unknown field gives 400 query_m.invalid_field; an unterminated bracket gives 400 query_m.invalid_format.", once("",
		do("anna", "GET /v1/notifications?search.rec_id={rec}&stack=colour", "", 400, `"query_m.invalid_field"`),
		do("anna", "GET /v1/notifications?search.rec_id={rec}&stack=created_at[year", "", 400, `"query_m.invalid_format"`))},
	{"These refusals, like the sort refusal, arise only once rows are fetched: a filter matching", steps(
		do("anna", "GET /v1/notifications?search.rec_id={unknown}&stack=colour", "", 200, `"data":{}`, `"total":0`),
		do("anna", "GET /v1/notifications?search.rec_id={unknown}&stack=created_at[year", "", 200, `"data":{}`),
		do("anna", "GET /v1/notifications?search.rec_id={unknown}&sort=colour", "", 200, `"data":[]`))},
	{"A `search.` name outside the filterable list gives code query_m.invalid_search_field with status 500.", steps(
		do("anna", "GET /v1/notifications?search.colour=red", "", 500, `"query_m.invalid_search_field"`, `"class":"business"`, `!"retryable"`))},
	{"An unknown sort field gives 400 query_m.invalid_sort_field only when the filter matched at least one row and rows are fetched; otherwise the answer is 200 with" +
		" an empty page.", once("", do("anna", "GET /v1/notifications?search.rec_id={rec}&sort=colour", "", 400, `"query_m.invalid_sort_field"`),
		do("anna", "GET /v1/notifications?search.rec_id={rec}&sort=colour&limit=-1", "", 200, `"data":[]`, `"total":1`),
		do("anna", "GET /v1/notifications?search.rec_id={unknown}&sort=colour", "", 200, `"data":[]`))},
	{"| GET /v1/notifications limit | default 10; maximum 100 (larger is clamped); zero or negative becomes 10; -1 skips data fetching |",
		pages(map[string]int{"&limit=101": 12, "&limit=-2": 10})},
	{"| GET /v1/notifications offset | default 0; negative clamped to 0 |", pages(map[string]int{"&offset=-1": 10})},

	// One notification
	{"Returns one notification with title and content resolved from keys (see table).", once(`,"title_key":"my.title"`, do("anna", get, "", 200, `"title":"my.title"`))},
	{"A row whose id is the nil id after the read gives 404, so a row the caller may not see reads as absent.", once("", do("beat", get, "", 404),
		do("anna", "GET /v1/notifications/{unknown}", "", 404), do("anna", "GET /v1/notifications/{nil}", "", 404))},
	{"| 404 | (not given) | read-one notification whose row is absent or not visible |", once("", do("beat", get, "", 404))},
	{"- Body: object with member `read`. It is a presence flag: whether true or false, the row is set read=true and read_at=now.",
		once("", do("anna", read, `{"read":false}`, 200, `"read":true`, `!"read_at":null`))},
	{"- Other members are ignored. No route marks a notification unread.", once("", do("anna", read, `{"read":true,"title":"x","read_at":null}`, 200, `"title":""`, `!"read_at":null`))},
	{"- Response 200 with the row unresolved (raw stored title and content, no link fields).", once(`,"title_key":"my.title"`, do("anna", read, `{"read":1}`, 200, `"title":""`, `!link_`))},
	{"- An id that matches no row of the caller (unknown, or another user's) also answers 200 with a zero-valued notification (all-zero id, read false).", once("",
		do("anna", "PATCH /v1/notifications/{unknown}/read", `{"read":true}`, 200, `"id":"{nil}"`, `"read":false`),
		do("beat", read, `{"read":true}`, 200, `"id":"{nil}"`, `"read":false`), do("anna", get, "", 200, `"read":false`))},
	{"- When `read` is absent ({} or null member)", once("", do("anna", read, `{}`, 200), do("anna", read, `{"read":null}`, 200), do("anna", get, "", 200, `"read":false`))},
	{"- Addresses the parent (fan-out source) record by primary key, not the per-recipient row, so an id taken from the list route finds no row.",
		once("", do("anna", remove+"{row}", "", 500, `"common.database_error"`), do("admin", remove+"{row}", "", 500), do("anna", get, "", 200))},
	{"- The caller's user id is not a scope; it is only recorded in deleted_by. Any caller admitted by the endpoint grant can soft-delete any notification whose parent" +
		" id they know, and it disappears for every recipient.", deletesForAll},
	{"- Response 200 (not 204) with an object `message` holding the fixed English text Notification deleted (not translated).", deletesForAll},
	{"- A missing row or any storage failure gives code common.database_error with status 500.", steps(do("anna", remove+"{unknown}", "", 500, `"common.database_error"`))},
	{"| 500 | common.database_error | notification delete of a missing row or storage failure |", steps(
		do("anna", remove+"{unknown}", "", 500, `"common.database_error"`, `"class":"business"`, `!"retryable"`))},
	{"Both are placeholders. Neither reads the request or stores anything; both answer 200 with an object `message` holding the fixed text Not implemented.", steps(
		do("anna", "GET /v1/notifications/preferences", "", 200, `{"message":"Not implemented"}`),
		do("anna", "PUT /v1/notifications/preferences", `{"email":false}`, 200, `{"message":"Not implemented"}`),
		do("anna", "PUT /v1/notifications/preferences", `no JSON`, 200, `{"message":"Not implemented"}`))},

	// The trigger
	{"Authentication: API key. Queue-based test notification. Body members (all optional,", func(t *testing.T, b *bank) {
		b.send(t, do("admin", "POST /v1/notifications/trigger", `{}`, 401))
		b.notified(t, 1, `,"event":"customer_status_changed","title_key":"my.title","content":"By hand","customer_id":"{customer}","is_system":true`)
		b.send(t, do("anna", get, "", 200, `"title":"my.title"`, `"content":"By hand"`, `"customer_id":"{customer}"`))
		b.send(t, do("key", "POST /v1/notifications/trigger", `{"type":7,"user_ids":["x"],"rec_id":{}}`, 200))
	}},
	{"1. rec_id is honoured only when rec_type is supplied with it; otherwise the stored rec_id becomes the id of the record type looked up from `type`," +
		" and such a row is never cleared by marking notifications read by record.", func(t *testing.T, b *bank) {
		b.send(t, do("key", "POST /v1/notifications/trigger", `{"type":"tasks","rec_id":"{customer}","user_ids":["{beat}"],"content":"of the type"}`, 200))
		row := first(t, b.page(t, "beat", "?search.content=of%20the%20type")["data"])
		if row["rec_type"] != "tasks" || row["rec_id"] == b.names["customer"] {
			t.Errorf("got %v", row)
		}
		b.send(t, do("beat", "POST /v1/notifications/read", fmt.Sprintf(`{"rec_type":"tasks","rec_id":%q}`, row["rec_id"]), 200))
		b.send(t, do("beat", "GET /v1/notifications/"+row["id"].(string), "", 200, `"read":false`))
	}},
	{"3. With no connected clients and no user_ids the route answers 200 with an object `message` holding No connected users to notify", func(t *testing.T, b *bank) {
		apart := open(t) // no stream of another statement is open there
		apart.send(t, do("key", "POST /v1/notifications/trigger", "", 200, `{"message":"No connected users to notify"}`))
		apart.send(t, do("admin", "GET /v1/notifications?search.event="+strings.Repeat("x", 3), "", 200, `"total":0`))
	}},
}
