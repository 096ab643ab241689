package endpoint_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

type address struct {
	Street string `json:"street"`
	City   string `json:"city"`
}

type input struct {
	ID       string                     `path:"id"`
	Limit    *int                       `query:"limit"`
	Active   *bool                      `query:"active"`
	Tags     []string                   `query:"tag" maxItems:"5"`
	Name     string                     `json:"name"`
	Age      int                        `json:"age"`
	Address  *address                   `json:"address"`
	Note     endpoint.Optional[string]  `json:"note"`
	Metadata jsontext.Value             `json:"metadata"`
	Parts    []address                  `json:"parts" maxItems:"100"`
	Amount   endpoint.Optional[float64] `json:"amount"`
}

func (in *input) Validate(v *apierr.Fields) {
	if in.Name == "" {
		v.Add("name", "invalid.required")
	}
}

// bind runs a request through a handler and gives what the service saw.
func bind(t testing.TB, target, body string) (input, error) {
	t.Helper()
	app := fiber.New()
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI(target)
	ctx.Request.SetBodyString(body)
	c := app.AcquireCtx(ctx)
	defer app.ReleaseCtx(c)
	var seen input
	h := endpoint.JSON(http.StatusOK, func(_ context.Context, in input) (endpoint.None, error) {
		seen = in
		return endpoint.None{}, nil
	})
	path, _, _ := strings.Cut(target, "?")
	_, err := h.Serve(context.Background(), &endpoint.Request{Fiber: c, Params: []string{strings.TrimPrefix(path, "/x/")}})
	return seen, err
}

const id = "0193a000-0000-7000-8000-000000000001"

func TestJSON_FillsEachFieldFromItsSource(t *testing.T) {
	got, err := bind(t, "/x/"+strings.ToUpper(id)+"?limit=7&active=false&tag=a&tag=b&name=evil",
		`{"name":"Ada","age":3,"address":{"city":"Chur"},"note":null,"metadata":{"a":[1]},"id":"other","unknown":{"x":1}}`)
	if err != nil {
		t.Fatal(err)
	}
	limit, active := 7, false
	want := input{ID: id, Limit: &limit, Active: &active, Tags: []string{"a", "b"}, Name: "Ada", Age: 3,
		Address: &address{City: "Chur"}, Note: endpoint.Optional[string]{Given: true, Null: true}, Metadata: jsontext.Value(`{"a":[1]}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestJSON_ReportsAllWrongFieldsAtOnce(t *testing.T) {
	_, err := bind(t, "/x/nothing?limit=many&active=perhaps", `{"age":"three","address":{"city":4},"parts":[{"street":"a"},{"street":1}]}`)
	got := map[string]string{}
	for field, text := range apierr.Of(err).Fields.All {
		got[field] = text.Key
	}
	want := map[string]string{"id": "invalid.uuid", "limit": "invalid.integer", "active": "invalid.boolean", "age": "invalid.type",
		"address.city": "invalid.type", "parts.1.street": "invalid.type", "name": "invalid.required"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestJSON_RejectsAmbiguousBodies(t *testing.T) {
	for name, body := range map[string]string{
		"duplicate member":        `{"name":"a","name":"b"}`,
		"duplicate unknown":       `{"name":"a","x":1,"x":2}`,
		"duplicate nested":        `{"name":"a","address":{"city":"a","city":"b"}}`,
		"invalid UTF-8":           "{\"name\":\"a\xff\"}",
		"lone surrogate":          `{"name":"\ud800"}`,
		"text after the object":   `{"name":"a"} {"name":"b"}`,
		"cut":                     `{"name":"a"`,
		"no object":               `["name"]`,
		"null":                    `null`,
		"a comment":               `{"name":"a"/*b*/}`,
		"trailing comma":          `{"name":"a",}`,
		"ten thousand brackets":   `{"name":` + strings.Repeat("[", 10_001),
		"byte order mark":         "\ufeff{\"name\":\"a\"}",
		"a form in place of JSON": "name=a",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := bind(t, "/x/"+id, body); !errors.Is(err, apierr.InvalidInput) {
				t.Errorf("got %v, want %s", err, apierr.InvalidInput.Code)
			}
		})
	}
}

func TestJSON_MatchesNamesExactly(t *testing.T) {
	_, err := bind(t, "/x/"+id, `{"NAME":"a","Name":"b"}`)
	if !apierr.Of(err).Fields.Has("name") {
		t.Errorf("got %v, want the name to be missing", err)
	}
}

func TestJSON_TreatsAnEmptyBodyAsAnEmptyObject(t *testing.T) {
	for _, body := range []string{"", " \n"} {
		if _, err := bind(t, "/x/"+id, body); !apierr.Of(err).Fields.Has("name") {
			t.Errorf("body %q: got %v, want only the name to be missing", body, err)
		}
	}
}

func TestCheck_NamesEveryGapOfARow(t *testing.T) {
	err := endpoint.CheckAll([]endpoint.Endpoint{{Method: "FETCH", Path: "x"}})
	for _, gap := range []string{"name, tag and summary", "method", "path", "access", "rate limit", "handler"} {
		if err == nil || !strings.Contains(err.Error(), gap) {
			t.Errorf("got %v, want it to name the %s", err, gap)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("/x/"+id+"?limit=3", `{"name":"Ada","parts":[{"street":"a"}],"amount":1e3}`)
	f.Add("/x/%zz?limit=%00", `{"name":{"a":[[[]]]}}`)
	f.Add("/x/", "\xff")
	f.Fuzz(func(t *testing.T, target, body string) {
		if strings.ContainsAny(target, "\x00\r\n ") || !strings.HasPrefix(target, "/x/") {
			return
		}
		in, err := bind(t, target, body)
		if err != nil && apierr.Of(err).Status != http.StatusBadRequest {
			t.Errorf("got %v, want a rejection with 400", err)
		}
		if err == nil && in.Name == "" {
			t.Error("an input that breaks a rule came through")
		}
	})
}
