package authzen

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kontor/server/access"
	"kontor/server/apierr"
)

// watched is a directory with two users, which notes what it is asked.
type watched struct {
	Directory
	asked []string
}

func (w *watched) FindSubject(_ context.Context, kind, ref string) (*access.Caller, bool, error) {
	w.asked = append(w.asked, "find "+kind+" "+ref)
	return &access.Caller{UserID: ref}, kind == "person" && (ref == "anna" || ref == "beat"), nil
}

func (w *watched) IsCalled(_ context.Context, userID, ref string) (bool, error) {
	w.asked = append(w.asked, "names of "+userID)
	return userID == ref, nil
}

type onlySelf struct{ Decider }

func (onlySelf) MayAskAboutOthers(*access.Caller) bool { return false }

// Of others, a caller learns nothing by the work that a question causes: it is the same for those who exist and those who do not.
func TestSubject_LooksNobodyElseUp(t *testing.T) {
	ctx := access.With(t.Context(), &access.Caller{UserID: "anna"})
	work := func(of Subject) (string, bool) {
		w := &watched{}
		s := New(onlySelf{}, w, Options{Policy: &access.Current{}})
		_, known, err := s.subject(ctx, of)
		if err != nil && !errors.Is(err, apierr.NoAccess) || known == (err != nil) {
			t.Errorf("%v: known %v, %v", of, known, err)
		}
		return fmt.Sprint(w.asked), known
	}
	existing, known := work(Subject{Type: user, ID: "beat"})
	missing, _ := work(Subject{Type: user, ID: "carl"})
	if known || existing != missing || existing != "[names of anna]" {
		t.Errorf("a user who exists causes %s, and one who does not %s", existing, missing)
	}
	if _, known := work(Subject{Type: user, ID: "anna"}); !known {
		t.Error("a caller may not ask about themselves")
	}
	if _, known := work(Subject{Type: serviceAccount, ID: "anna"}); known {
		t.Error("a person was found as a service account")
	}
}
