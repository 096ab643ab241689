package list

import "testing"

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
