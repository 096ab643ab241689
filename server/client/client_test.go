package client_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/client"
	"kontor/server/client/clienttest"
	"kontor/server/servertest"
	"kontor/store"
)

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func newCustomer(t testing.TB, c *client.Client, lastName string) *client.Customer {
	t.Helper()
	return must(c.Customers.Create(t.Context(), client.CustomerCreateInput{FirstName: "Anna", LastName: lastName, Email: "anna@example.ch"}))(t)
}

func TestClient_CreatesReadsChangesAndDeletes(t *testing.T) {
	ctx, s := t.Context(), servertest.Start(t)
	kontor := clienttest.Admin(t, s)
	born := client.Date{Year: 1984, Month: time.May, Day: 17}
	customer := must(kontor.Customers.Create(ctx, client.CustomerCreateInput{
		FirstName: "Anna", LastName: "Keller", Email: "anna@example.ch", Phone: "+41446681800", DateOfBirth: born, Metadata: map[string]any{"a": 1.0},
		Address: client.Set(client.CustomerAddressInput{City: "Zürich"}),
	}))(t)
	if customer.Type != client.CustomerTypeIndividual || *customer.DateOfBirth != born || customer.Address.City != "Zürich" || customer.CreatedAt.IsZero() || customer.ETag == "" {
		t.Errorf("got %+v", customer)
	}
	changed := must(kontor.Customers.Update(ctx, customer.ID, client.CustomerUpdateInput{Phone: client.Null[string](), LastName: "Muster"}, client.IfMatch(customer.ETag)))(t)
	if changed.Phone != nil || changed.LastName != "Muster" || changed.FirstName != "Anna" || changed.ETag == customer.ETag {
		t.Errorf("got %+v", changed)
	}
	_, err := kontor.Customers.Update(ctx, customer.ID, client.CustomerUpdateInput{LastName: "Lost"}, client.IfMatch(customer.ETag))
	if !errors.Is(err, client.ErrCommonPreconditionFailed) {
		t.Errorf("a change of an old version: got %v", err)
	}
	if _, err := kontor.Customers.Get(ctx, customer.ID, client.IfNoneMatch(changed.ETag)); !errors.Is(err, client.ErrNotModified) {
		t.Errorf("an unchanged record: got %v", err)
	}
	if _, err := kontor.Customers.Update(ctx, customer.ID, client.CustomerUpdateInput{}, client.IfMatch("")); err == nil || !strings.Contains(err.Error(), "If-Match") {
		t.Errorf("an empty ETag: got %v, want an error: the change would be unconditional", err)
	}
	payer := must(kontor.Payers.Create(ctx, client.PayerCreateInput{CustomerID: customer.ID, Company: "Keller AG"}))(t)
	must(kontor.Payers.Delete(ctx, payer.ID))(t)
	if archived := must(kontor.Payers.Get(ctx, payer.ID))(t); archived.Active {
		t.Errorf("got %+v", archived)
	}
}

func TestClient_ReturnsErrors(t *testing.T) {
	ctx, s := t.Context(), servertest.Start(t)
	kontor := clienttest.Admin(t, s, client.WithLanguage("de"))
	_, err := kontor.Payers.Get(ctx, store.NewID(), client.RequestID("5f0e8a3b9c7d4e21a6b0c1d2e3f40516"))
	var failure *client.Error
	if !errors.As(err, &failure) || !errors.Is(err, client.ErrPayerNotFound) || errors.Is(err, client.ErrChatNotFound) {
		t.Fatalf("got %v", err)
	}
	if failure.Status != 404 || failure.Operation != "payers.get" || failure.Class != client.ErrorClassBusiness || failure.Retryable || failure.RequestID != "5f0e8a3b9c7d4e21a6b0c1d2e3f40516" {
		t.Errorf("got %+v", failure)
	}
	_, err = kontor.Customers.Create(ctx, client.CustomerCreateInput{Email: "anna"})
	if !errors.As(err, &failure) || failure.Fields["last_name"] != "Dieses Feld ist erforderlich." || failure.Fields["email"] == "" || !strings.Contains(err.Error(), "last_name") {
		t.Errorf("got %v", err)
	}
	_, err = kontor.Customers.Create(ctx, client.CustomerCreateInput{}, client.InLanguage("it"))
	if !errors.As(err, &failure) || failure.Fields["last_name"] == "" || failure.Fields["last_name"] == "Dieses Feld ist erforderlich." {
		t.Errorf("in Italian: got %v", err)
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err := kontor.Customers.Get(ctx, id); err == nil || errors.As(err, &failure) && failure.Status == 404 {
			t.Errorf("the id %q: got %v, want an error before the request", id, err)
		}
	}
	if _, err := kontor.Customers.Get(ctx, "../payers?x#y"); !errors.Is(err, client.ErrCommonInvalidInput) {
		t.Errorf("an id with special characters: got %v", err)
	}
	if _, err := clienttest.New(t, s).Customers.Get(ctx, store.NewID()); !errors.Is(err, client.ErrNotSignedIn) {
		t.Errorf("without a sign-in: got %v", err)
	}
	if _, err := kontor.Auth.Public(ctx); !errors.Is(err, client.ErrNoAPIKey) {
		t.Errorf("without an API key: got %v", err)
	}
}

func TestClient_PagesOverAllRows(t *testing.T) {
	const count = 1_050
	ctx, s := t.Context(), servertest.Start(t)
	kontor := clienttest.Admin(t, s)
	for i := range count {
		name := "Muster, Söhne"
		if i%2 == 1 {
			name = `"Other"`
		}
		newCustomer(t, kontor, name)
	}
	seen := map[string]bool{}
	for customer, err := range kontor.Customers.All(ctx, client.CustomersListParams{Sort: "id"}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[customer.ID] = true
	}
	if len(seen) != count {
		t.Errorf("got %d rows, want %d", len(seen), count)
	}
	for _, c := range []struct {
		filter client.Filter
		want   int64
	}{
		{client.Is("Muster, Söhne"), count / 2}, {client.Is(`"Other"`, "Nobody"), count / 2}, {client.Is("Muster, Söhne", `"Other"`), count},
		{client.Is("null"), 0}, {client.IsNull, 0}, {client.Is("must*"), count / 2},
	} {
		page := must(kontor.Customers.List(ctx, client.CustomersListParams{Limit: 3, SearchLastName: c.filter}))(t)
		if page.Total != c.want || len(page.Data) != int(min(3, c.want)) {
			t.Errorf("%s: got %d rows of %d, want %d", c.filter, len(page.Data), page.Total, c.want)
		}
	}
	grouped := must(kontor.Customers.ListStacked(ctx, "last_name", client.CustomersListParams{Limit: 20}))(t)
	if !slices.Equal(grouped.Keys, []string{`"Other"`, "Muster, Söhne"}) || len(grouped.Data["Muster, Söhne"]) == 0 {
		t.Errorf("got the groups %v", grouped.Keys)
	}
	taken := 0
	for range kontor.Customers.All(ctx, client.CustomersListParams{Limit: 7, Offset: count - 10}) {
		if taken++; taken == 9 {
			break
		}
	}
	if taken != 9 {
		t.Errorf("took %d rows", taken)
	}
	since := client.Between(s.Clock.Now().Add(-time.Second), time.Time{})
	if page := must(kontor.Customers.List(ctx, client.CustomersListParams{SearchCreatedAt: since}))(t); page.Total != count {
		t.Errorf("%s: got %d rows", since, page.Total)
	}
	if _, err := kontor.Customers.List(ctx, client.CustomersListParams{Sort: "nothing"}); !errors.Is(err, client.ErrQueryInvalidSortField) {
		t.Errorf("got %v", err)
	}
}

// Lists of chats have cursors in the Link header instead of offsets.
func TestClient_FollowsLinksToTheNextPage(t *testing.T) {
	ctx, s := t.Context(), servertest.Start(t)
	kontor, beat := clienttest.Admin(t, s), s.User(access.Customer)
	chat := must(kontor.Chats.Create(ctx, client.ChatCreateInput{Participants: []string{beat.UserID}}))(t)
	var want []string
	for range 45 {
		s.Clock.Advance(time.Millisecond)
		message := must(kontor.Chats.Post(ctx, chat.ID, client.ChatPostInput{Content: "Good morning"}))(t)
		want = append(want, message.ID)
	}
	slices.Reverse(want)
	var got []string
	for message, err := range kontor.Chats.AllMessages(ctx, chat.ID, client.ChatsMessagesParams{Limit: 20}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, message.ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %d messages, want %d", len(got), len(want))
	}
}

func TestClient_RepeatsCreationsWithTheirKey(t *testing.T) {
	ctx, s := t.Context(), servertest.Start(t)
	kontor := clienttest.Admin(t, s)
	in := client.CustomerCreateInput{FirstName: "Anna", LastName: "Keller", Email: "anna@example.ch"}
	var first, second client.Meta
	one := must(kontor.Customers.Create(ctx, in, client.IdempotencyKey("one"), client.Into(&first)))(t)
	again := must(kontor.Customers.Create(ctx, in, client.IdempotencyKey("one"), client.Into(&second)))(t)
	if one.ID != again.ID || first.Replayed || !second.Replayed || first.Status != 201 || first.RequestID == "" {
		t.Errorf("got %+v and %+v", first, second)
	}
	if other := must(kontor.Customers.Create(ctx, in))(t); other.ID == one.ID {
		t.Error("two calls without a key returned one record")
	}
	in.LastName = "Muster"
	if _, err := kontor.Customers.Create(ctx, in, client.IdempotencyKey("one")); !errors.Is(err, client.ErrCommonIdempotencyMismatch) {
		t.Errorf("got %v", err)
	}
}

func TestClient_UploadsAPictureAndABill(t *testing.T) {
	ctx, s := t.Context(), servertest.Start(t)
	kontor := clienttest.Admin(t, s)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewNRGBA(image.Rect(0, 0, 300, 300))); err != nil {
		t.Fatal(err)
	}
	avatar := must(kontor.Profile.Avatar.Set(ctx, client.ProfileAvatarFormInput{File: client.File{Name: `my "photo".png`, MediaType: "image/png", Data: picture.Bytes()}}))(t)
	file := must(kontor.Profile.Avatar.Get(ctx, avatar.URL[strings.LastIndexByte(avatar.URL, '/')+1:]))(t)
	if !strings.HasPrefix(file.MediaType, "image/") || len(file.Data) == 0 || file.ETag == "" {
		t.Errorf("got %s, %d bytes, %s", file.MediaType, len(file.Data), file.ETag)
	}
	if _, err := kontor.Profile.Avatar.Set(ctx, client.ProfileAvatarFormInput{File: client.File{Data: []byte("no picture")}}); !errors.Is(err, client.ErrProfileInvalidFileType) {
		t.Errorf("got %v", err)
	}
	bill := must(os.ReadFile("../../testdata/qr/files/png-100-b60-00.png"))(t)
	read := must(kontor.Invoices.ReadQRCode(ctx, client.InvoiceReadInput{Base64File: base64.StdEncoding.EncodeToString(bill), Options: client.InvoiceOptionsInput{ValidateFormat: true}}))(t)
	if found, err := json.Marshal(read); err != nil || !bytes.Contains(found, []byte(`"iban":"CH`)) {
		t.Errorf("got %s", found)
	}
}

func TestClient_SendsEachCredentialOnlyWhereItIsNeeded(t *testing.T) {
	ctx, s := t.Context(), servertest.Start(t)
	admin := clienttest.Admin(t, s)
	account := must(admin.ServiceAccounts.Create(ctx, client.ServiceaccountCreateInput{Name: "back office", Roles: []string{access.Advisor}}))(t)
	token := must(admin.ServiceAccounts.CreateToken(ctx, account.ID, client.ServiceaccountTokenInput{Name: "first"}))(t)
	seen := &recorder{}
	kontor := must(client.New("http://"+s.Address, client.WithToken(token.Token), client.WithAPIKey(servertest.APIKey), client.WithTransport(seen)))(t)
	must(kontor.Customers.List(ctx, client.CustomersListParams{}))(t)
	must(kontor.Auth.Public(ctx))(t)
	must(kontor.Auth.Methods(ctx))(t)
	want := []string{"Bearer " + token.Token + "|", "|" + servertest.APIKey, "|"}
	if got := seen.headers("Authorization", "X-API-Key"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := kontor.SignIn(ctx, servertest.AdminEmail, servertest.AdminPassword); err == nil {
		t.Error("a client with a fixed token has signed in")
	}
	must(admin.ServiceAccounts.RevokeToken(ctx, account.ID, token.ID))(t)
	if _, err := kontor.Customers.List(ctx, client.CustomersListParams{}); !errors.Is(err, client.ErrCommonUnauthorized) {
		t.Errorf("after the revocation: got %v", err)
	}
}

func TestClient_EndsWithItsContext(t *testing.T) {
	s := servertest.Start(t)
	kontor := clienttest.Admin(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := kontor.Customers.List(ctx, client.CustomersListParams{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, err := range kontor.Customers.All(ctx, client.CustomersListParams{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	for _, err := range kontor.Notifications.Stream(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func TestNew_RejectsAddresses(t *testing.T) {
	for _, address := range []string{"", "bank.example", "ftp://bank.example", "https://", "https://anna:secret@bank.example", "https://bank.example/?a=b", "https://bank.example/#x", "http://[::1", "https://anna:secret@[::1"} {
		if _, err := client.New(address); err == nil {
			t.Errorf("%q was accepted", address)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows the password: %v", address, err)
		}
	}
}
