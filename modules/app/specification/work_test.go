package specification_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
)

// task reads the task of the bank.
const task = "GET /v1/customers/{customer}/tasks/{task}"

// first returns the only element of an array of objects.
func first(t *testing.T, value any) map[string]any {
	t.Helper()
	list, _ := value.([]any)
	if len(list) == 0 {
		t.Fatal("the array is empty")
	}
	return list[0].(map[string]any)
}

// chatOf finds the chat of the bank in the list of a caller.
func chatOf(t *testing.T, b *bank, as string) map[string]any {
	t.Helper()
	var chats []map[string]any
	b.send(t, do(as, "GET /v1/chats", "", 200)).Into(t, &chats)
	for _, c := range chats {
		if c["id"] == b.names["chat"] {
			return c
		}
	}
	t.Fatalf("%s does not see the chat", as)
	return nil
}

// bill returns a request for a bill of the samples, with further members of the body.
func bill(t *testing.T, members string) string {
	t.Helper()
	content, err := os.ReadFile("../../../testdata/qr/files/formats-b57-06.png")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"base64_file":%q%s}`, base64.StdEncoding.EncodeToString(content), members)
}

func readsBill(t *testing.T, b *bank) {
	info := b.send(t, do("advisor", "POST /v1/invoices/qrcode", bill(t, ""), 200)).JSON(t)["qr_info"].(map[string]any)
	for _, m := range []string{"iban string", "creditor object", "?amount number", "currency string", "reference string", "message string"} {
		hasMember(t, info, m)
	}
	for name, value := range info["creditor"].(map[string]any) {
		if value != nil && !isKind(value, "string") {
			t.Errorf("creditor.%s is %v, want a string", name, value)
		}
	}
	for _, name := range []string{"name", "address", "zip", "city", "country"} {
		hasMember(t, info["creditor"].(map[string]any), name+" string")
	}
}

var work = []statement{
	// Chats
	{"Provides chats between participants with messages, last-message summary and unread counts.", func(t *testing.T, b *bank) {
		b.send(t, do("advisor", "POST /v1/chats/{chat}/messages", `{"content":"Unread"}`, 201))
		c := chatOf(t, b, "anna")
		if c["unreadCount"].(float64) < 1 || c["lastMessage"].(map[string]any)["content"] != "Unread" {
			t.Errorf("got %v", c)
		}
	}},
	{"Chat: `id` uuid, `type` string, `participants` array of uuid, `lastMessage` (a message), `unreadCount` integer, `metadata` object, `createdAt` date-time," +
		" `updatedAt` date-time.", func(t *testing.T, b *bank) {
		c := chatOf(t, b, "anna")
		for _, m := range []string{"id uuid", "type string", "participants array", "lastMessage object", "unreadCount integer", "metadata object", "createdAt date-time",
			"updatedAt date-time"} {
			hasMember(t, c, m)
		}
	}},
	{"Message: `id` uuid, `chatId` uuid, `senderId` uuid, `content` string, `type` string, `metadata` object, `createdAt` date-time, `readBy` array of uuid.", func(t *testing.T, b *bank) {
		message := b.send(t, do("anna", "POST /v1/chats/{chat}/messages", `{"content":"Hello","metadata":{"k":1}}`, 201)).JSON(t)
		for _, m := range []string{"id uuid", "chatId uuid", "senderId uuid", "content string", "type string", "metadata object", "createdAt date-time", "readBy array"} {
			hasMember(t, message, m)
		}
	}},
	{"| POST | /v1/chats | body: participants (array of uuid), metadata (object) | chat record |", steps(
		do("advisor", "POST /v1/chats", `{"participants":["{anna}"]}`, 200, `"id":"{chat}"`),
		do("advisor", "POST /v1/chats", `{"participants":["{anna}"],"metadata":{"topic":"loan"}}`, 201, `"metadata":{"topic":"loan"}`, `!"id":"{chat}"`).keep("loan", "id"),
		do("advisor", "POST /v1/chats", `{"participants":["{anna}"]}`, 200, `"id":"{chat}"`))},
	{"| GET | /v1/chats | no parameters | JSON array of chat records for the user |", func(t *testing.T, b *bank) {
		const chats = 130 // more than a page of other lists, with more than 1 MiB of messages
		for i := range chats {
			b.send(t, do("advisor", "POST /v1/chats", fmt.Sprintf(`{"participants":["{anna}","{beat}"],"metadata":{"n":%d}}`, i), 201).keep("long", "id"))
			b.send(t, do("advisor", "POST /v1/chats/{long}/messages", `{"content":"`+strings.Repeat("x", 10000)+`"}`, 201))
		}
		var all []map[string]any
		b.send(t, do("beat", "GET /v1/chats", "", 200)).Into(t, &all)
		if len(all) != chats {
			t.Errorf("got %d chats, want %d", len(all), chats)
		}
	}},
	{"| POST | /v1/chats/{id}/messages | path id (chat uuid); body: content (string), metadata (object) | message record |", steps(
		do("anna", "POST /v1/chats/{chat}/messages", `{"content":"Grüezi","metadata":{}}`, 201, `"content":"Grüezi"`, `"chatId":"{chat}"`, `"senderId":"{anna}"`),
		do("beat", "POST /v1/chats/{chat}/messages", `{"content":"Grüezi"}`, 403))},

	// Tasks
	{"Provides tasks per customer, with assignees, a category, a status and a progress weight.", fields("anna", task, "assignees array", "category string", "status string",
		"performed_weight integer")},
	{"| title | string | |", fields("anna", task, "title string")},
	{"| category | string | one of: sign, approve, update, delete |", func(t *testing.T, b *bank) {
		for _, category := range []string{"sign", "approve", "update", "delete"} {
			b.send(t, do("advisor", "POST /v1/customers/{customer}/tasks", `{"title":"T","category":"`+category+`"}`, 201, `"category":"`+category+`"`))
		}
		b.send(t, do("advisor", "POST /v1/customers/{customer}/tasks", `{"title":"T","category":"other"}`, 400, `"category"`))
	}},
	{"| description | string | |", fields("anna", task, "description string")},
	{"| is_urgent | boolean | |", fields("anna", task, "is_urgent boolean")},
	{"| status | string | one of: pending, in_progress, completed, canceled, declined |", steps(do("anna", task, "", 200, `"status":"pending"`),
		do("advisor", "PATCH /v1/customers/{customer}/tasks/{task}/status", `{"status":"other"}`, 400, `"status"`))},
	{"| weight | integer | |", fields("anna", task, "weight integer")},
	{"| performed_weight | integer | |", fields("anna", task, "performed_weight integer")},
	{"| assignees | array of assignee | |", fields("anna", task, "assignees array")},
	{"| created_at | date-time | |", fields("anna", task, "created_at date-time")},
	{"| created_by | uuid | |", fields("anna", task, "created_by uuid")},
	{"| metadata | object | members `logs` (array of objects) and `actions` (object) |", func(t *testing.T, b *bank) {
		metadata := b.send(t, do("anna", task, "", 200)).JSON(t)["metadata"].(map[string]any)
		hasMember(t, metadata, "logs array")
		hasMember(t, metadata, "actions object")
		first(t, metadata["logs"])
	}},
	{"Assignee: `id` uuid, `name` string, `task_id` uuid, `user_id` uuid, `status` string, `weight` integer, `task_completed` boolean, `assigned_at` date-time.",
		func(t *testing.T, b *bank) {
			assignee := first(t, b.send(t, do("anna", task, "", 200)).JSON(t)["assignees"])
			for _, m := range []string{"id uuid", "name string", "task_id uuid", "user_id uuid", "status string", "weight integer", "task_completed boolean", "assigned_at date-time"} {
				hasMember(t, assignee, m)
			}
		}},
	{"| Task | status | pending, in_progress, completed, canceled, declined |", func(t *testing.T, b *bank) {
		for _, status := range []string{"in_progress", "completed", "canceled", "declined"} {
			b.send(t, do("advisor", "POST /v1/customers/{customer}/tasks", `{"title":"T","category":"sign"}`, 201, `"status":"pending"`).keep("new", "id"))
			b.send(t, do("advisor", "PATCH /v1/customers/{customer}/tasks/{new}/status", `{"status":"`+status+`"}`, 200, `"status":"`+status+`"`))
		}
	}},
	{"| GET | /v1/customers/{customer_id}/tasks/{id} | bearer; path customer_id and id | 200 task record; a missing task gives error code tasks.task_not_found" +
		" with message Task not found |", steps(do("anna", task, "", 200, `"id":"{task}"`), do("nobody", task, "", 401),
		do("anna", "GET /v1/customers/{customer}/tasks/{unknown}", "", 404, `"tasks.task_not_found"`, `"message":"Task not found"`))},
	{"| 404 | tasks.task_not_found | task missing |", steps(do("advisor", "GET /v1/customers/{customer}/tasks/{unknown}", "", 404, `"tasks.task_not_found"`))},

	// Invoices
	{"Reads payment data from a Swiss QR-bill in an uploaded invoice file.", readsBill},
	{"`qr_info` object: `iban` string, `creditor` (object: name, address, zip, city, country, all strings), `amount` number, `currency` string, `reference` string," +
		" `message` string.", readsBill},
	{"| POST | /v1/invoices/qrcode | bearer; body: base64_file (string, base64 of the invoice file), options (object: page integer, validate_format boolean)",
		func(t *testing.T, b *bank) {
			b.send(t, do("advisor", "POST /v1/invoices/qrcode", bill(t, `,"options":{"page":1,"validate_format":true}`), 200, `"qr_info"`))
			b.send(t, do("nobody", "POST /v1/invoices/qrcode", bill(t, ""), 401))
		}},
	{"| 400 | invalid_input | invalid input on the invoice QR route |", func(t *testing.T, b *bank) {
		for _, body := range []string{`{}`, `null`, `[]`, `7`, `{"base64_file":7}`, `{"base64_file":"%%%"}`, `{`, `{"base64_file":""}`, `{"base64_file":"AAAA","base64_file":"AAAA"}`,
			bill(t, `,"options":{"page":1.5}`), bill(t, `,"options":{"validate_format":"yes"}`), bill(t, `,"options":[]`), bill(t, `,"options":{"page":99}`)} {
			answer := b.send(t, do("advisor", "POST /v1/invoices/qrcode", body, 400, `"code":"invalid_input"`)).JSON(t)
			hasMember(t, answer, "message string")
			hasMember(t, answer, "details object")
		}
	}},
}
