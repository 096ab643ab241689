// Command example creates a customer and lists all customers of its name.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"kontor/server/client"
)

func main() {
	ctx := context.Background()
	kontor, err := client.New(os.Getenv("KONTOR_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if err := kontor.SignIn(ctx, os.Getenv("KONTOR_USER"), os.Getenv("KONTOR_PASSWORD")); err != nil {
		log.Fatal(err)
	}
	created, err := kontor.Customers.Create(ctx, client.CustomerCreateInput{FirstName: "Anna", LastName: "Keller, Söhne", Email: "anna@example.ch"})
	var failure *client.Error
	if errors.As(err, &failure) {
		log.Fatal(failure.Code, failure.Fields, failure.RequestID)
	} else if err != nil {
		log.Fatal(err)
	}
	change := client.CustomerUpdateInput{Phone: client.Set("+41446681800")}
	if _, err := kontor.Customers.Update(ctx, created.ID, change, client.IfMatch(created.ETag)); errors.Is(err, client.ErrCommonPreconditionFailed) {
		log.Fatal("the customer has changed meanwhile")
	} else if err != nil {
		log.Fatal(err)
	}
	for customer, err := range kontor.Customers.All(ctx, client.CustomersListParams{SearchLastName: client.Is("Keller, Söhne")}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(customer.ID, customer.FirstName, customer.LastName, *customer.Phone)
	}
}
