package list

import (
	"testing"

	"github.com/go-json-experiment/json"
)

// Cursors that were issued before stay valid, because the values in them are encoded as JSON.
func TestAppendValues_IsJSON(t *testing.T) {
	for _, values := range [][]any{
		{}, {nil}, {int64(-7), "Müller <\"\\\u2028\x00>", true, nil}, {int64(1) << 62, 1.5, "", false}, {[]byte{0, 255}},
	} {
		want, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := appendValues([]byte("before"), values); err != nil || string(got) != "before"+string(want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if _, err := appendValues(nil, []any{"\xff"}); err == nil {
		t.Error("a text that is not UTF-8 was encoded")
	}
}

// Lists of arguments that differ have different keys.
func TestMemoKey_TellsArgumentsApart(t *testing.T) {
	text, empty := "a", ""
	keys := map[string][]any{}
	for _, args := range [][]any{
		nil, {nil}, {""}, {"a"}, {"a", ""}, {"", "a"}, {"a\x00v1:b"}, {"a", "b"}, {int64(1), int64(12)}, {int64(11), int64(2)}, {true}, {[]byte("b")},
	} {
		key := memoKey("SELECT 1", args)
		if other, known := keys[key]; known {
			t.Errorf("%q and %q have one key", other, args)
		}
		keys[key] = args
	}
	for _, same := range [][2][]any{{{"a"}, {&text}}, {{""}, {&empty}}, {{nil}, {(*string)(nil)}}} {
		if memoKey("SELECT 1", same[0]) != memoKey("SELECT 1", same[1]) {
			t.Errorf("%q and the same behind a pointer have two keys", same[0])
		}
	}
	if memoKey("SELECT 1", nil) == memoKey("SELECT 2", nil) {
		t.Error("two statements have one key")
	}
}
