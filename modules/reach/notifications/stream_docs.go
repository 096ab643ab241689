package notifications

// streamDescription describes the stream in the API document.
const streamDescription = "The frames are `open` (once, with a `message`), `message` (a notification; its `id` is that of the frame), `reset` (the " +
	"`Last-Event-ID` is unknown: load the list again) and `close` (the service shuts down: reconnect after a pause). A comment keeps " +
	"the connection alive. Missed notifications follow a known `Last-Event-ID`; without one, system notifications that never reached a " +
	"stream of this user come first. GET and POST both open a stream.\n\n" +
	"A notification about a chat message has the member `chat`: `chat_id`, `message_id`, `type` (`text` or `system`), `text`, `created_by` and " +
	"`created_at`. `text` holds at most 2000 characters; `truncated` is true if the message is longer. The member `people` names the " +
	"author. Both are missing if the user has left the chat or may not read its messages."

const streamExample = "event: open\ndata: {\"message\":\"Connection established\"}\n\n" +
	"id: 0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\nevent: message\ndata: {\"id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\",\"user_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c14\"," +
	"\"customer_id\":\"\",\"event\":\"message_received\",\"title\":\"New message\",\"content\":\"Anna Keller has written to you.\"," +
	"\"rec_type\":\"chats\",\"link_url\":\"/chats/0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c11\",\"link_text\":\"Open the chat\",\"read\":false," +
	"\"created_at\":\"2026-01-31T08:15:30.123Z\",\"sent_at\":\"2026-01-31T08:15:30.123Z\",\"channels_attempted\":[\"stream\"]," +
	"\"channels_sent\":[\"stream\"],\"channels_delivered\":[\"stream\"],\"channels_failed\":[]," +
	"\"chat\":{\"chat_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c11\",\"message_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c12\",\"type\":\"text\"," +
	"\"text\":\"Good morning\",\"created_by\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\",\"created_at\":\"2026-01-31T08:15:30.123Z\"}," +
	"\"people\":{\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\":{\"display_name\":\"Anna Keller\",\"staff\":true}}}\n\n" +
	": keepalive\n\n"
