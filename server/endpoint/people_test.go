package endpoint_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/server/endpoint"
)

func TestPerson_AppendsTheSameJSONAsTheEncoder(t *testing.T) {
	for _, p := range []endpoint.Person{
		{}, {DisplayName: "Anna \"Änni\" Keller\n", Staff: true}, {DisplayName: "שרה", UserName: "s.levy@example.ch"}, {UserName: "</script>"},
	} {
		want, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.AppendJSON([]byte("x"))
		if err != nil || string(got) != "x"+string(want) {
			t.Errorf("got %s, %v, want x%s", got, err, want)
		}
	}
	if _, err := (endpoint.Person{DisplayName: "\xff"}).AppendJSON(nil); err == nil {
		t.Error("text that is not UTF-8 was encoded")
	}
}
