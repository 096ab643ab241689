package notifications

// streamDescription tells the API's documentation what stands in a stream.
const streamDescription = "The frames are `open` (once, with a `message`), `message` (a notification; its `id` is that of the frame), `reset` (the " +
	"`Last-Event-ID` is unknown: load the list anew) and `close` (the service shuts down: come back later, not at once). A comment keeps " +
	"the connection alive. Missed notifications follow a known `Last-Event-ID`; without one, system notifications that never reached a " +
	"stream of this user come first. GET and POST both open a stream."

const streamExample = "event: open\ndata: {\"message\":\"Connection established\"}\n\n" +
	"id: 0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\nevent: message\ndata: {\"id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\",\"event\":\"customer_created\"}\n\n" +
	": keepalive\n\n"
