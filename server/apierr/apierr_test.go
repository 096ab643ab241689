package apierr_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"kontor/server/apierr"
)

func TestCatalogue_HasUniqueCodes(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range apierr.All() {
		if seen[kind.Code] {
			t.Errorf("%s stands twice", kind.Code)
		}
		seen[kind.Code] = true
		if kind.Status < 400 || kind.Status > 599 {
			t.Errorf("%s has status %d", kind.Code, kind.Status)
		}
	}
}

func TestError_IsItsKindWhenWrapped(t *testing.T) {
	cause := errors.New("disk")
	err := fmt.Errorf("write: %w", apierr.DatabaseError.Wrap(cause))
	if !errors.Is(err, apierr.DatabaseError) || !errors.Is(err, cause) || errors.Is(err, apierr.ServerError) {
		t.Errorf("%v is not what it was made from", err)
	}
	if got := apierr.Of(fmt.Errorf("bare: %w", apierr.TaskNotFound)); got.Kind != apierr.TaskNotFound {
		t.Errorf("a bare kind became %v", got)
	}
	if got := apierr.Of(cause); got.Kind != apierr.ServerError {
		t.Errorf("what is no fault became %v, want a server error", got)
	}
}

func TestDetail_DoesNotChangeTheOriginal(t *testing.T) {
	first := apierr.InvalidKYCTransition.Detail("allowed", 1)
	second := first.Detail("more", 2)
	if len(first.Details) != 1 || len(second.Details) != 2 {
		t.Errorf("got %v and %v", first.Details, second.Details)
	}
}

func TestTemporary_ReportsRetryableErrors(t *testing.T) {
	for kind, want := range map[apierr.Kind]bool{apierr.RateLimited: true, apierr.Unavailable: true, apierr.ServerError: true,
		apierr.InvalidInput: false, apierr.CredentialExists: false} {
		if kind.Temporary() != want {
			t.Errorf("%s: got %t", kind.Code, !want)
		}
	}
	if apierr.RateLimited.RetryAfter(time.Second).Retry != time.Second {
		t.Error("the time to wait is lost")
	}
}

func TestFields_KeepTheFirstSentenceAndTheOrder(t *testing.T) {
	var f apierr.Fields
	if f.Err() != nil {
		t.Error("no field is wrong, and yet there is an error")
	}
	f.Add("b", "invalid.required")
	f.Add("a", "invalid.type")
	f.Add("b", "invalid.type")
	var got string
	for field, text := range f.All {
		got += field + "=" + text.Key + " "
	}
	if want := "b=invalid.required a=invalid.type "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
