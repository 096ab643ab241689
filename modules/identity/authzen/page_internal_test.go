package authzen

import "testing"

// Every text is a page that its token names again, or no token.
func FuzzParseToken(f *testing.F) {
	f.Add(page{after: "record-1", limit: 10}.token())
	f.Add(page{after: "a b ü \x00", limit: 0}.token())
	f.Add("MSA5OTk5IHg")
	f.Add("nonsense")
	f.Fuzz(func(t *testing.T, token string) {
		p, ok := parseToken(token)
		if !ok {
			return
		}
		if p.limit < 0 || p.limit > maxLimit {
			t.Fatalf("limit %d", p.limit)
		}
		if again, ok := parseToken(p.token()); !ok || again != p {
			t.Fatalf("%+v became %+v", p, again)
		}
	})
}
