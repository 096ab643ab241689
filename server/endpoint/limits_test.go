package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/ratelimit"
)

type limitedPart struct {
	Tags []string `json:"tags" maxItems:"2"`
}

type limitedInput struct {
	Names    []string                 `json:"names" maxItems:"3"`
	Parts    Optional[[]limitedPart]  `json:"parts" maxItems:"2"`
	Texts    map[string]string        `json:"texts" maxProperties:"2"`
	ByKind   map[string]*limitedPart  `json:"by_kind" maxProperties:"2"`
	Metadata jsontext.Value           `json:"metadata"`
	Change   Optional[jsontext.Value] `json:"change"`
	Any      any                      `json:"any"`
}

// bound returns what the decoder says about a body: the wrong fields with their messages, or the cause of a body that is no JSON.
func bound(body string) string {
	p := newPlan(reflect.TypeFor[limitedInput]())
	problems := &apierr.Fields{}
	err := p.bindBody([]byte(body), reflect.New(p.input).Elem(), problems)
	if wrong, ok := errors.AsType[*apierr.Error](err); ok {
		problems = wrong.Fields
	}
	var all []string
	for field, text := range problems.All {
		all = append(all, fmt.Sprintf("%s %s %v", field, text.Key, text.Args["Max"]))
	}
	return strings.Join(all, ", ")
}

func nest(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

func TestLimits_HoldWhileABodyIsRead(t *testing.T) {
	ones := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	for _, test := range []struct{ body, want string }{
		{`{"names":["a","b","c"],"parts":[{"tags":["a","b"]},{}],"texts":{"a":"","b":""},"metadata":{"a":[1,2,3,4]}}`, ""},
		{`{"parts":null,"names":null,"texts":null,"metadata":null}`, ""},
		{`{"names":["a","b","c","d"]}`, "names invalid.max_items 3"},
		{`{"names" :  [1,1,1,1`, "names invalid.max_items 3"}, // what follows is not read
		{`{"parts":[{},{},{}]}`, "parts invalid.max_items 2"},
		{`{"parts":[{},{"tags":["a","b","c"]}]}`, "parts.1.tags invalid.max_items 2"},
		{`{"texts":{"a":"","b":"","c":""}}`, "texts invalid.max_properties 2"},
		{`{"by_kind":{"x":{"tags":[1,2,3]}}}`, "by_kind.x.tags invalid.max_items 2"},
		{`{"metadata":` + ones(MaxFreeValues-1) + `}`, ""},
		{`{"metadata":` + ones(MaxFreeValues) + `}`, "metadata invalid.max_values 1000"},
		{`{"change":{"a":` + ones(MaxFreeValues) + `}}`, "change invalid.max_values 1000"},
		{`{"any":` + ones(MaxFreeValues) + `}`, "any invalid.max_values 1000"},
		{`{"unknown":` + ones(MaxValues-1) + `}`, ""},
		{`{"unknown":` + ones(MaxValues) + `}`, "body invalid.max_values 20000"},
		{`{"a":` + ones(MaxValues/2) + `,"b":` + ones(MaxValues/2) + `}`, "body invalid.max_values 20000"},
		{`{"metadata":` + nest("[", "", "]", MaxDepth-1) + `}`, ""},
		{`{"metadata":` + nest("[", "", "]", MaxDepth) + `}`, "body invalid.max_depth 64"},
		{`{"unknown":` + nest(`{"a":`, "1", "}", MaxDepth) + `}`, "body invalid.max_depth 64"},
		{`{"names":["a"]`, "body invalid.json <nil>"},
		{`{"names":["a"}`, "body invalid.json <nil>"},
		{`{"metadata":{"a":1,"a":2}}`, "body invalid.json_duplicate <nil>"},
	} {
		if got := bound(test.body); got != test.want {
			t.Errorf("%.80s: got %q, want %q", test.body, got, test.want)
		}
	}
}

// Members may be cut out of the body with any white space around them.
func TestLimits_KeepTheValuesOfMembers(t *testing.T) {
	p := newPlan(reflect.TypeFor[limitedInput]())
	in, problems := &limitedInput{}, &apierr.Fields{}
	if err := p.bindBody([]byte("{ \"names\" \n:\t[ \"a:\" ] , \"metadata\":\r\n{ \"b\" : 1 } }"), reflect.ValueOf(in).Elem(), problems); err != nil || !problems.Empty() {
		t.Fatal(err, problems)
	}
	if fmt.Sprint(in.Names) != "[a:]" || string(in.Metadata) != `{ "b" : 1 }` {
		t.Errorf("got %q and %q", in.Names, in.Metadata)
	}
}

func TestCheck_RejectsArraysAndMapsWithoutALimit(t *testing.T) {
	row := func(h Handler) error {
		return Endpoint{Name: "a.b", Tag: "A", Summary: "List", Method: http.MethodPost, Path: "/a", Access: access.Public, Limit: ratelimit.Public, Handle: h}.Check()
	}
	for name, err := range map[string]error{
		"slice": row(JSON(200, func(context.Context, struct {
			A []string `json:"a"`
		}) (None, error) {
			return None{}, nil
		})),
		"pointer": row(JSON(200, func(context.Context, struct {
			A *[]string `json:"a"`
		}) (None, error) {
			return None{}, nil
		})),
		"optional": row(JSON(200, func(context.Context, struct {
			A Optional[[]int] `json:"a"`
		}) (None, error) {
			return None{}, nil
		})),
		"inner": row(JSON(200, func(context.Context, struct {
			A []struct {
				B []int `json:"b"`
			} `json:"a" maxItems:"3"`
		}) (None, error) {
			return None{}, nil
		})),
		"of slices": row(JSON(200, func(context.Context, struct {
			A [][]int `json:"a" maxItems:"3"`
		}) (None, error) {
			return None{}, nil
		})),
		"map": row(JSON(200, func(context.Context, struct {
			A map[string]any `json:"a"`
		}) (None, error) {
			return None{}, nil
		})),
		"query": row(JSON(200, func(context.Context, struct {
			A []string `query:"a"`
		}) (None, error) {
			return None{}, nil
		})),
	} {
		if err == nil || !strings.Contains(err.Error(), "needs the tag max") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := row(JSON(200, func(context.Context, limitedInput) (None, error) { return None{}, nil })); err != nil {
		t.Error(err)
	}
}
