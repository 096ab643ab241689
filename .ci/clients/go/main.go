// Command clients calls a running Kontor with the client that oapi-codegen generates. It ends with an error when an answer is not
// as the API document says.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"clients/client"
)

func main() {
	if err := run(context.Background(), os.Getenv("KONTOR_URL"), os.Getenv("KONTOR_USER"), os.Getenv("KONTOR_PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, "oapi-codegen:", err)
		os.Exit(1)
	}
	fmt.Println("oapi-codegen: the client works")
}

func run(ctx context.Context, address, user, password string) error {
	var token string
	api, err := client.NewClientWithResponses(address, client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	signedIn, err := api.AuthSignInWithResponse(ctx, nil, client.SignInInput{UserId: user, Password: password})
	if err != nil || signedIn.JSON200 == nil {
		return fmt.Errorf("sign in: %v, %v", signedIn, err)
	}
	token = signedIn.JSON200.AccessToken

	first, business := "Go", client.CustomerType("individual")
	created, err := api.CustomersCreateWithResponse(ctx, nil, client.CustomerCreateInput{Type: &business, FirstName: &first, LastName: "Client, the", Email: "go@example.ch"})
	if err != nil || created.JSON201 == nil {
		return fmt.Errorf("create a customer: %v, %v", created, err)
	}
	name := `"Client, the"` // a value with a comma
	page, err := api.CustomersListWithResponse(ctx, &client.CustomersListParams{SearchLastName: &name})
	if err != nil || page.JSON200 == nil || len(page.JSON200.Data) == 0 || page.JSON200.Data[0].LastName != "Client, the" {
		return fmt.Errorf("list customers: %v, %v", page, err)
	}
	missing, err := api.PayersGetWithResponse(ctx, created.JSON201.Id, nil)
	if err != nil || missing.JSONDefault == nil || missing.JSONDefault.Code != "payers.payer_not_found" || missing.JSONDefault.Status != http.StatusNotFound {
		return fmt.Errorf("get a missing payer: %v, %v", missing, err)
	}
	wrong, err := api.CustomersCreateWithResponse(ctx, nil, client.CustomerCreateInput{})
	if err != nil || wrong.JSONDefault == nil || (*wrong.JSONDefault.Details)["last_name"] == nil {
		return fmt.Errorf("create a customer without a name: %v, %v", wrong, err)
	}
	return nil
}
