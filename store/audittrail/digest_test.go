package audittrail_test

import (
	"bytes"
	"testing"

	"kontor/store/audittrail"
	"kontor/store/sealing"
)

// The halves of a digest cover the answer and what is stored besides, each for itself, under the key of the database.
func TestDigest_CoversAnswerAndRest(t *testing.T) {
	const half = 32 // hexadecimal digits
	digest := func(key byte, answer, stored any) string {
		keys, err := sealing.New(bytes.Repeat([]byte{key}, 32))
		if err != nil {
			t.Fatal(err)
		}
		d := audittrail.NewDigester(keys)
		return d.Of(audittrail.Record{Answer: answer, Stored: stored}).String()
	}
	type object = map[string]any
	one := digest(1, object{"name": "Anna"}, object{"password_hash": "one"})
	if again := digest(1, object{"name": "Anna"}, object{"password_hash": "one"}); again != one || len(one) != 2*half {
		t.Fatalf("got %q and %q", one, again)
	}
	for _, c := range []struct {
		name                   string
		other                  string
		sameAnswer, sameStored bool
	}{
		{"another answer", digest(1, object{"name": "Beat"}, object{"password_hash": "one"}), false, true},
		{"another stored value", digest(1, object{"name": "Anna"}, object{"password_hash": "two"}), true, false},
		{"nothing stored", digest(1, object{"name": "Anna"}, nil), true, false},
		{"another key", digest(2, object{"name": "Anna"}, object{"password_hash": "one"}), false, false},
	} {
		if c.other[:half] == one[:half] != c.sameAnswer || c.other[half:] == one[half:] != c.sameStored {
			t.Errorf("%s: got %s instead of %s", c.name, c.other, one)
		}
	}
}
