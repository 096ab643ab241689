package app_test

import (
	"testing"

	"kontor/server/servertest"
	"kontor/store/storetest"
)

// Every table states what it holds about persons: its module exports and erases that, or says why there is nothing.
func TestPersonalData_CoversEveryTable(t *testing.T) {
	s := servertest.Start(t)
	stated := map[string]int{}
	for _, table := range s.PersonalData() {
		stated[table.Name]++
		if (table.Holds == "") == (table.Why == "") {
			t.Errorf("%s: state either what it holds or why that is nothing", table.Name)
		}
	}
	for _, name := range storetest.Tables(t, s.DB) {
		if stated[name] != 1 {
			t.Errorf("the table %s is stated %d times: add it to PersonalData of its module", name, stated[name])
		}
		delete(stated, name)
	}
	for name := range stated {
		t.Errorf("the table %s does not exist", name)
	}
}
