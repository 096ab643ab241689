package app_test

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"kontor/modules/bank/customers"
	"kontor/modules/demo/demotest"
	"kontor/server/csvtable"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// The customers of the demo, exported and imported into an empty bank, are the same but for what an import cannot set.
func TestImport_TheCustomersOfTheDemoComeBack(t *testing.T) {
	testenv.Need(t, testenv.Full)
	from, to := demotest.Start(t), servertest.Start(t)
	table := from.Admin().With("Accept", "text/csv").Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK).Body
	admin := to.Admin()
	id := admin.With("Content-Type", "text/csv").Do("POST", "/v1/customers/import", table).Expect(t, http.StatusAccepted).JSON(t)["id"].(string)
	if err := to.Imports.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := admin.Do("GET", "/v1/imports/"+id, nil).Expect(t, http.StatusOK).JSON(t)
	before, after := byName(t, from.Admin()), byName(t, admin)
	if i["rejected"] != 0.0 || i["created"] != float64(len(before)) || len(before) < 5 {
		t.Fatalf("got %v for %d customers", i, len(before))
	}
	for name, want := range before {
		got := after[name]
		for _, member := range []string{"id", "created_at", "updated_at", "kyc_status", "verification_level"} {
			delete(want, member)
			delete(got, member)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	}
}

// byName returns all customers by their names and e-mail addresses.
func byName(t *testing.T, c *servertest.Client) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for offset := 0; ; offset += 100 {
		var page struct {
			Data    []map[string]any
			HasMore bool `json:"has_more"`
		}
		c.Do("GET", "/v1/customers?limit=100&offset="+strconv.Itoa(offset), nil).Expect(t, http.StatusOK).Into(t, &page)
		for _, one := range page.Data {
			all[one["first_name"].(string)+" "+one["last_name"].(string)+" "+one["email"].(string)] = one
		}
		if !page.HasMore {
			return all
		}
	}
}

// Each column of the list as a table can be imported.
func TestImport_KnowsTheColumnsOfTheList(t *testing.T) {
	known := customers.ImportColumns()
	const external = "metadata.external_id" // beside external_id of the list
	if _, ok := known[external]; !ok {
		t.Errorf("%s is unknown", external)
	}
	delete(known, external)
	columns := csvtable.New(reflect.TypeFor[customers.Customer](), endpoint.Encoding).Columns()
	if got, want := slices.Sorted(maps.Keys(known)), slices.Sorted(slices.Values(columns)); !slices.Equal(got, want) {
		t.Errorf("imports know the columns %v, and the list has %v", got, want)
	}
}
