package openapi

import "kontor/server/endpoint"

// securitySchemes contains the two ways to authenticate.
var securitySchemes = Map[*SecurityScheme]{
	{bearerScheme, &SecurityScheme{Type: "http", Scheme: "bearer", BearerFormat: "JWT",
		Description: "The access token from `POST /authenticate`, or the token of a service account: `kontor_sa_…`, from `POST /v1/service-accounts/{id}/tokens`."}},
	{apiKeyScheme, &SecurityScheme{Type: "apiKey", In: "header", Name: "X-API-Key",
		Description: "An API key, for the operations that require one instead of a bearer token."}},
}

// sharedParameters contains the parameters of several operations.
var sharedParameters = Map[*Parameter]{
	{"list.limit", &Parameter{Name: "limit", In: "query", Example: 10, Schema: &Schema{Type: "integer"},
		Description: "Maximum number of rows: 10 by default, 100 at most. Zero and negative numbers mean the default, " +
			"but -1 returns the totals only."}},
	{"list.offset", &Parameter{Name: "offset", In: "query", Example: 0, Schema: &Schema{Type: "integer"},
		Description: "Number of rows to skip. A negative number means zero."}},
	{"list.cursor", &Parameter{Name: "cursor", In: "query", Example: "eyJvIjpbXX0", Schema: &Schema{Type: "string", MaxLength: new(int64(8000))},
		Description: "The `next_cursor` of an answer: the page continues after its last row, also when rows were created or deleted meanwhile. " +
			"Use it with the same search, sort and distinct; any other text is rejected. Deep pages cost no more than the first."}},
	{"list.sort", &Parameter{Name: "sort", In: "query", Example: "-created_at", Schema: &Schema{Type: "string"},
		Description: "Fields to sort by, separated by commas; a leading `-` sorts descending. Newest first by default."}},
	{"list.stack", &Parameter{Name: "stack", In: "query", Schema: &Schema{Type: "string"}, Example: "-created_at[YYYY-MM]",
		Description: "A field to group the rows of the page by; `data` is then an object of arrays, and `keys` lists its members in order. A leading " +
			"`-` sorts the groups descending; date-times take a format in brackets: `[year]`, `[month]`, `[day]`, `[hour]` or any of " +
			"`YYYY MM DD HH mm ss` with punctuation, or a layout of Go such as `[2006-01-02]`."}},
	{"list.distinct", &Parameter{Name: "distinct", In: "query", Schema: &Schema{Type: "string"}, Example: "id",
		Description: "A field: of the rows with the same value of it, only the first in the order is returned."}},
	{"X-Device-ID", &Parameter{Name: "X-Device-ID", In: "header", Schema: &Schema{Type: "string", MaxLength: new(int64(endpoint.MaxDeviceID))}, Example: "office-laptop",
		Description: "A name of the device, so that the user recognizes the session. All steps of a sign-in, a step-up or an enrolment must send the same."}},
	{"X-Device-Token", &Parameter{Name: "X-Device-Token", In: "header", Schema: &Schema{Type: "string"}, Example: exampleID + ".1.x2Zp0v4bJm1qT8",
		Description: "The `device_token` of the last sign-in of this user on this device. Attempts with it are counted separately."}},
	{"Idempotency-Key", &Parameter{Name: "Idempotency-Key", In: "header", Schema: &Schema{Type: "string", MaxLength: new(int64(255)), Pattern: "^[!-~]*$"}, Example: exampleID,
		Description: "Makes the request idempotent: within 24 hours, a request with the same key, caller, path and body returns the first answer."}},
	{"If-Match", &Parameter{Name: "If-Match", In: "header", Schema: &Schema{Type: "string"}, Example: `"v3"`,
		Description: "The `ETag` of the record when it was read. If the record has changed since, the answer is 412 and nothing is changed."}},
	{"Range", &Parameter{Name: "Range", In: "header", Schema: &Schema{Type: "string"}, Example: "bytes=0-1023",
		Description: "One range of bytes (RFC 9110, section 14.2)."}},
	{"If-Range", &Parameter{Name: "If-Range", In: "header", Schema: &Schema{Type: "string"}, Example: `"9f86d081884c7d65"`,
		Description: "The `ETag` of the content that the range belongs to; with another one the answer is the whole content."}},
	{"If-None-Match", &Parameter{Name: "If-None-Match", In: "header", Schema: &Schema{Type: "string"}, Example: `"v3"`,
		Description: "The `ETag` of the client's copy. If the record is unchanged, the answer is 304 without a body."}},
	{"Last-Event-ID", &Parameter{Name: "Last-Event-ID", In: "header", Schema: &Schema{Type: "string"}, Example: exampleID,
		Description: "The id of the last notification that the client received; the stream continues after it."}},
}

// sharedHeaders contains the headers of single answers. The description of the document names those of every answer.
var sharedHeaders = Map[*Header]{
	{"ETag", &Header{Description: "A validator of the record's state, for `If-Match` and `If-None-Match`.", Schema: &Schema{Type: "string"}, Example: `"v3"`}},
	{"Link", &Header{Description: "The next page of the list, as `rel=\"next\"` (RFC 8288); missing on the last page.", Schema: &Schema{Type: "string"},
		Example: `</v1/chats?before=1769847330123.` + exampleID + `>; rel="next"`}},
	{"Location", &Header{Description: "The address of the redirect.", Schema: &Schema{Type: "string"}, Example: "https://bank.example/signin"}},
	{"Accept-Ranges", &Header{Description: "`bytes`: the content can be requested in parts.", Schema: &Schema{Type: "string"}, Example: "bytes"}},
	{"Content-Disposition", &Header{Description: "A name for the file (RFC 6266).", Schema: &Schema{Type: "string"}, Example: `attachment; filename="passport.pdf"`}},
	{"Content-Range", &Header{Description: "Of a part: its place in the content.", Schema: &Schema{Type: "string"}, Example: "bytes 0-1023/48213"}},
	{"Repr-Digest", &Header{Description: "The digest of the whole content (RFC 9530).", Schema: &Schema{Type: "string"},
		Example: "sha-256=:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=:"}},
	{"X-Page-Count", &Header{Description: "The number of pages of the document.", Schema: &Schema{Type: "integer"}, Example: 2}},
	{"X-Total-Rows", &Header{Description: "Only of a table (`Accept: text/csv`): the number of rows that the list has.", Schema: &Schema{Type: "integer"}, Example: 120}},
	{"X-Truncated-Rows", &Header{Description: "Only of a table that is too long: how many of the last rows are missing.", Schema: &Schema{Type: "integer"}, Example: 20}},
	{endpoint.IgnoredHeader, &Header{Description: "The names of the query parameters that had no effect, separated by commas, with unusual characters in percent-encoding. " +
		"Dots at the end stand for further ones. Missing if all had an effect.", Schema: &Schema{Type: "string"}, Example: "status, _"}},
	{"Idempotency-Replayed", &Header{Description: "Present if the answer is that of an earlier request with the same key.",
		Schema: &Schema{Type: "string"}, Example: "true"}},
}
