package openapi

// securitySchemes are the two ways to show who is calling.
var securitySchemes = Map[*SecurityScheme]{
	{bearerScheme, &SecurityScheme{Type: "http", Scheme: "bearer", BearerFormat: "JWT",
		Description: "The access token from `POST /authenticate`."}},
	{apiKeyScheme, &SecurityScheme{Type: "apiKey", In: "header", Name: "X-API-Key",
		Description: "An API key, for the operations that take one in place of a bearer token."}},
}

// sharedParameters are the parameters that several operations have.
var sharedParameters = Map[*Parameter]{
	{"list.limit", &Parameter{Name: "limit", In: "query", Example: 10, Schema: &Schema{Type: "integer"},
		Description: "How many rows to give: 10 unless said otherwise, 100 at most. Zero and negative numbers mean the default, " +
			"but -1 asks for the totals alone."}},
	{"list.offset", &Parameter{Name: "offset", In: "query", Example: 0, Schema: &Schema{Type: "integer"},
		Description: "How many rows to pass over. A negative number means zero."}},
	{"list.sort", &Parameter{Name: "sort", In: "query", Example: "-created_at", Schema: &Schema{Type: "string"},
		Description: "Fields to sort by, separated by commas; `-` in front sorts descending. Newest first unless said otherwise."}},
	{"list.stack", &Parameter{Name: "stack", In: "query", Schema: &Schema{Type: "string"}, Example: "-created_at[YYYY-MM]",
		Description: "A field to group the rows of the page by; `data` is then an object of arrays, and `keys` lists its members in order. `-` in " +
			"front sorts the groups descending; date-times take a format in brackets: `[year]`, `[month]`, `[day]`, `[hour]` or any of " +
			"`YYYY MM DD HH mm ss` with punctuation."}},
	{"list.distinct", &Parameter{Name: "distinct", In: "query", Schema: &Schema{Type: "string"}, Example: "id",
		Description: "A field of which each value is to stand for one row, the first in the order."}},
	{"Accept-Language", &Parameter{Name: "Accept-Language", In: "header", Schema: &Schema{Type: "string"}, Example: "de-CH, de;q=0.9",
		Description: "The language of texts in the answer: en, de, fr or it. English when none of them is asked for."}},
	{"X-Request-ID", &Parameter{Name: "X-Request-ID", In: "header", Schema: &Schema{Type: "string", MaxLength: new(int64(128))}, Example: exampleID,
		Description: "An id of the client's for this request. It comes back in the answer and stands in the log."}},
	{"X-Device-ID", &Parameter{Name: "X-Device-ID", In: "header", Schema: &Schema{Type: "string", MaxLength: new(int64(128))}, Example: "office-laptop",
		Description: "Names the device of the session, so that its user recognises it."}},
	{"X-Device-Token", &Parameter{Name: "X-Device-Token", In: "header", Schema: &Schema{Type: "string", MaxLength: new(int64(128))}, Example: exampleID + ".1.x2Zp0v4bJm1qT8",
		Description: "The `device_token` of the last sign-in of this user on this device. Attempts with it have a budget of their own."}},
	{"Idempotency-Key", &Parameter{Name: "Idempotency-Key", In: "header", Schema: &Schema{Type: "string", MaxLength: new(int64(255))}, Example: exampleID,
		Description: "Makes the request happen once: the same key, caller, path and body within 24 hours get the first answer again."}},
	{"If-Match", &Parameter{Name: "If-Match", In: "header", Schema: &Schema{Type: "string"}, Example: `"v3"`,
		Description: "The `ETag` with which the record was read. If it has changed since, the answer is 412 and nothing is changed."}},
	{"If-None-Match", &Parameter{Name: "If-None-Match", In: "header", Schema: &Schema{Type: "string"}, Example: `"v3"`,
		Description: "The `ETag` of the record as the client has it. If it is unchanged, the answer is 304 without a body."}},
	{"Last-Event-ID", &Parameter{Name: "Last-Event-ID", In: "header", Schema: &Schema{Type: "string"}, Example: exampleID,
		Description: "The id of the last notification that the client has seen; the stream goes on after it."}},
}

// sharedHeaders are the headers of answers.
var sharedHeaders = Map[*Header]{
	{"X-Request-ID", &Header{Description: "The id of the request, the client's or a new one.", Schema: &Schema{Type: "string"}, Example: exampleID}},
	{"Content-Language", &Header{Description: "The language of the texts in the answer.",
		Schema: &Schema{Type: "string", Enum: []any{"en", "de", "fr", "it"}}, Example: "en"}},
	{"ETag", &Header{Description: "The state of the record, for `If-Match` and `If-None-Match`.", Schema: &Schema{Type: "string"}, Example: `"v3"`}},
	{"Link", &Header{Description: "Where the rest of the list is, as `rel=\"next\"` (RFC 8288); missing when there is no more.", Schema: &Schema{Type: "string"},
		Example: `</v1/chats?before=1769847330123.` + exampleID + `>; rel="next"`}},
	{"RateLimit-Limit", &Header{Description: "Requests that are allowed in a minute.", Schema: &Schema{Type: "integer"}, Example: 1200}},
	{"RateLimit-Remaining", &Header{Description: "Requests that may still come at once.", Schema: &Schema{Type: "integer"}, Example: 1199}},
	{"RateLimit-Reset", &Header{Description: "Seconds until all of them may come at once again.", Schema: &Schema{Type: "integer"}, Example: 1}},
	{"Retry-After", &Header{Description: "Seconds to wait before the next try.", Schema: &Schema{Type: "integer"}, Example: 2}},
	{"WWW-Authenticate", &Header{Description: "How to say who is calling.", Schema: &Schema{Type: "string"}, Example: `Bearer realm="kontor"`}},
	{"Idempotency-Replayed", &Header{Description: "Present when the answer is that of an earlier request with the same key.",
		Schema: &Schema{Type: "string", Enum: []any{"true"}}, Example: "true"}},
}
