package requestlog

import (
	"strings"
	"sync"
	"testing"
)

func TestRing_IsRightUnderConcurrency(t *testing.T) {
	var r ring
	r.init(64, 1000)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 500 {
				r.add(&entry{content: &content{request: "x"}})
			}
		})
	}
	for range 100 {
		found, last, _ := r.after(0, 1000)
		for i := 1; i < len(found); i++ {
			if found[i].seq != found[i-1].seq+1 {
				t.Fatalf("%d follows %d", found[i].seq, found[i-1].seq)
			}
		}
		if len(found) > 64 || len(found) > 0 && found[len(found)-1].seq != last {
			t.Fatalf("%d entries up to %d", len(found), last)
		}
		r.dropContent()
	}
	writers.Wait()
	if found, last, gap := r.after(0, 1000); len(found) != 64 || last != 5000 || !gap {
		t.Errorf("%d entries up to %d, gap %v", len(found), last, gap)
	}
	if _, ok := r.get(5000); !ok {
		t.Error("the last entry is missing")
	}
	for _, seq := range []int64{-1, 0, 4936, 5001, 1 << 62} {
		if _, ok := r.get(seq); ok {
			t.Errorf("entry %d is there", seq)
		}
	}
}

func TestRing_BoundsItsContent(t *testing.T) {
	var r ring
	r.init(10_000, 0)
	body := strings.Repeat("x", maxBody)
	for range 20_000 {
		r.add(&entry{content: &content{query: body, request: body, answer: body}})
	}
	held := 0
	found, _, _ := r.after(0, 10_000)
	for _, e := range found {
		held += e.content.size()
	}
	if held != r.content || held > bodyBudget || held < bodyBudget-4*maxBody || found[len(found)-1].content == nil {
		t.Errorf("%d bytes are held, %d are counted", held, r.content)
	}
	r.dropContent()
	if r.content != 0 {
		t.Errorf("%d bytes remain", r.content)
	}
	r.add(&entry{content: &content{query: body}})
	if r.content != maxBody {
		t.Errorf("%d bytes are counted", r.content)
	}
}

func TestMaskBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"password":"x","a":1}`:                           `{"password":"***","a":1}`,
		`{"a":{"token":{"b":[1,2]}},"b":[{"otp":1}]}`:      `{"a":{"token":"***"},"b":[{"otp":"***"}]}`,
		`{"postal_code":"8000","code":"1","x":"password"}`: `{"postal_code":"8000","code":"***","x":"password"}`,
		`["password","y"]`:                                 `["password","y"]`,
		`"text"`:                                           `"text"`,
		`{"a":`:                                            ``,
		`not json`:                                         ``,
		``:                                                 ``,
		`{"client_secret" : "x"}`:                          `{"client_secret":"***"}`,
		`{"pass\u0077ord":"x","b":"\"token\":1"}`: `{"password":"***","b":"\"token\":1"}`,
		"{\n  \"a\": [1,\n2]}":                    `{"a":[1,2]}`,
		`{"a":"say \"password\"","b":"x\\"}`:      `{"a":"say \"password\"","b":"x\\"}`,
		`{"b":"x\\","PassWord":"x"}`:              `{"b":"x\\","PassWord":"***"}`,
		`{"a":1}}`:                                `{"a":1}`,
	} {
		if got := maskBody([]byte(body), false); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if got := maskBody([]byte(`{"code":"common.conflict","details":{"code":"1"}}`), true); got != `{"code":"common.conflict","details":{"code":"***"}}` {
		t.Errorf("got %s for an error", got)
	}
	if got := maskBody([]byte(`{"a":"`+strings.Repeat("ä", maxBody)+`"}`), false); len(got) > maxBody+3 || len(got) < maxBody-3 {
		t.Errorf("%d bytes are kept", len(got))
	}
	if got := maskBody([]byte(strings.Repeat(" ", maxRead+1)), false); got != "" {
		t.Error("a huge body is read")
	}
}

func FuzzMaskBody(f *testing.F) {
	f.Add(`{"password":"SECRET","a":[{"token":"SECRET"}]}`)
	f.Add(`{"a":1}{"b":2}`)
	f.Fuzz(func(t *testing.T, body string) {
		if got := maskBody([]byte(body), false); len(got) > maxBody+len("…") {
			t.Errorf("%d bytes", len(got))
		}
		if got := maskBody([]byte(`{"password":"`+strings.Repeat("q", 10)+`","rest":`+body+`}`), true); strings.Contains(got, "qqqqqqqqqq") && !strings.Contains(body, "qqqq") {
			t.Errorf("the secret is shown: %s", got)
		}
	})
}
