package app_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// readCSV returns the rows of a table without its header, and the position of each column.
func readCSV(t *testing.T, answer servertest.Response) (rows [][]string, column map[string]int) {
	t.Helper()
	answer.Expect(t, http.StatusOK)
	if got := answer.Header.Get("Content-Type"); got != "text/csv; charset=utf-8; header=present" {
		t.Errorf("Content-Type is %q", got)
	}
	rows, err := csv.NewReader(strings.NewReader(answer.Body)).ReadAll()
	if err != nil {
		t.Fatalf("%v in %q", err, answer.Body)
	}
	column = map[string]int{}
	for i, name := range rows[0] {
		if _, twice := column[name]; twice || name == "" {
			t.Errorf("the column %q is not unique", name)
		}
		column[name] = i
	}
	return rows[1:], column
}

// Every list without a path parameter is also a table.
func TestCSV_EveryListIsATable(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin().With("Accept", "text/csv")
	tables := 0
	for _, row := range s.Table() {
		if !row.Handle.Listed() || strings.Contains(row.Path, "{") {
			continue
		}
		answer := admin.Do("GET", row.Path, nil)
		if answer.Status == http.StatusBadRequest {
			continue // It needs parameters.
		}
		tables++
		if _, column := readCSV(t, answer); len(column) < 2 {
			t.Errorf("%s has %d columns", row.Path, len(column))
		}
	}
	if tables < 15 {
		t.Errorf("only %d lists are tables", tables)
	}
}

func TestCSV_HasTheRowsOfTheList(t *testing.T) {
	s := servertest.Start(t)
	advisor, other := s.User(access.Advisor), s.User(access.Customer)
	const many = 1100 // more than one page
	for i := range many {
		name := fmt.Sprintf("Row %04d", i)
		advisor.Create("/v1/customers", map[string]any{"first_name": "=1+1", "last_name": name, "email": "row@example.ch", "phone": "+41446681800",
			"address": map[string]any{"city": "Zürich, \"Enge\"", "country": "CH"}})
	}
	other.Create("/v1/customers", map[string]any{"first_name": "Not", "last_name": "Mine", "email": "mine@example.ch"})
	if rows, _ := readCSV(t, other.With("Accept", "text/csv").Do("GET", "/v1/customers?search.last_name=Row*", nil)); len(rows) > 0 {
		t.Errorf("another advisor gets %d rows", len(rows))
	}

	client := advisor.With("Accept", "text/csv")
	answer := client.Do("GET", "/v1/customers?sort=last_name&search.last_name=Row*&limit=3&offset=7", nil)
	rows, column := readCSV(t, answer)
	if len(rows) != many || answer.Header.Get("X-Total-Rows") != fmt.Sprint(many) || answer.Header.Get("X-Truncated-Rows") != "" {
		t.Fatalf("got %d rows, %v", len(rows), answer.Header)
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Disposition"), `attachment; filename="customers-2`) || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v", answer.Header)
	}
	for i, row := range rows {
		want := map[string]string{"last_name": fmt.Sprintf("Row %04d", i), "first_name": "'=1+1", "phone": "'+41446681800", "address.city": "Zürich, \"Enge\"", "address.country": "CH"}
		for name, text := range want {
			if row[column[name]] != text {
				t.Fatalf("row %d: %s is %q, want %q", i, name, row[column[name]], text)
			}
		}
	}
	trail := s.Admin().Do("GET", "/v1/audit?search.action=lists.export&search.actor="+advisor.UserID, nil).Expect(t, http.StatusOK).JSON(t)
	if trail["total"] != 1.0 {
		t.Errorf("the audit trail has %v exports, want 1", trail["total"])
	}
}

func TestCSV_IsNegotiated(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	for header, want := range map[string]string{"text/csv": "text/csv", "text/csv;q=0.5, application/json": "application/json", "*/*": "application/json", "text/csv;q=0": "application/json"} {
		if got := advisor.With("Accept", header).Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK).Header.Get("Content-Type"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s", header, got)
		}
	}
	client := advisor.With("Accept", "text/csv")
	marked := advisor.With("Accept", "text/csv; bom=true").Do("GET", "/v1/payers", nil).Expect(t, http.StatusOK)
	if !strings.HasPrefix(marked.Body, "\ufeffid,") || strings.HasPrefix(client.Do("GET", "/v1/payers", nil).Body, "\ufeff") {
		t.Errorf("the byte order mark is wrong: %q", marked.Body)
	}
	head := client.Do("HEAD", "/v1/customers", nil).Expect(t, http.StatusOK)
	if head.Body != "" || !strings.HasPrefix(head.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("HEAD: %v %q", head.Header, head.Body)
	}
	// Errors are those of the list.
	for _, query := range []string{"search.nothing=1", "limit=x"} {
		want := advisor.Do("GET", "/v1/customers?"+query, nil)
		if got := client.Do("GET", "/v1/customers?"+query, nil); got.Status != want.Status || got.JSON(t)["code"] != want.JSON(t)["code"] {
			t.Errorf("%s: got %d %s", query, got.Status, got.Body)
		}
	}
	client.Do("GET", "/v1/audit", nil).Expect(t, http.StatusForbidden)
	s.Anonymous().With("Accept", "text/csv").Do("GET", "/v1/customers", nil).Expect(t, http.StatusUnauthorized)
	// Other answers have no table.
	if got := client.Do("GET", "/v1/profile", nil).Expect(t, http.StatusOK).Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the profile is %s", got)
	}
	for range 20 { // The place of a caller is free again after each table.
		client.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK)
	}
}
