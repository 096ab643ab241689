package payers_test

import (
	"errors"
	"testing"

	"kontor/server/access"
	"kontor/server/client"
	"kontor/server/client/clienttest"
	"kontor/server/servertest"
)

func TestPayers_NameCreatorAndEditor(t *testing.T) {
	s, ctx := servertest.Start(t), t.Context()
	owner, advisor := s.User(access.Customer).Named(t, "Olivia Owner"), s.User(access.Advisor).Named(t, "Anton Advisor")
	owned := clienttest.New(t, s, client.WithToken(owner.Token))
	advised := clienttest.New(t, s, client.WithToken(advisor.Token))
	created, err := owned.Payers.Create(ctx, client.PayerCreateInput{CustomerID: newCustomer(owner), Name: "Hans Zahler"})
	if err != nil {
		t.Fatal(err)
	}
	if got := created.People[owner.UserID]; got.DisplayName != "Olivia Owner" || got.UserName != "" || got.Staff {
		t.Errorf("the answer to the creation names %+v", got)
	}
	changed, err := advised.Payers.Update(ctx, created.ID, client.PayerUpdateInput{Company: client.Set("Neu AG")}, client.IfMatch(created.ETag))
	if err != nil {
		t.Fatal(err)
	}
	owner.Named(t, "Olga Owner")
	record, recordErr := advised.Payers.Get(ctx, created.ID)
	page, listErr := advised.Payers.List(ctx, client.PayersListParams{})
	if err := errors.Join(recordErr, listErr); err != nil {
		t.Fatal(err)
	}
	for name, people := range map[string]map[string]client.Person{"record": record.People, "list": page.People} {
		if got := people[owner.UserID]; got.DisplayName != "Olga Owner" || got.UserName == "" || got.Staff {
			t.Errorf("%s: the creator is %+v", name, got)
		}
		if got := people[advisor.UserID]; got.DisplayName != "Anton Advisor" || !got.Staff {
			t.Errorf("%s: the editor is %+v", name, got)
		}
	}
	if _, err := advised.Payers.Get(ctx, created.ID, client.IfNoneMatch(changed.ETag)); !errors.Is(err, client.ErrNotModified) {
		t.Errorf("a new name of the owner changed the payer: %v", err)
	}
	if _, err := owned.Payers.Update(ctx, created.ID, client.PayerUpdateInput{Company: client.Null[string]()}, client.IfMatch(created.ETag)); !errors.Is(err, client.ErrCommonPreconditionFailed) {
		t.Errorf("a change of the former version: got %v", err)
	}
}
