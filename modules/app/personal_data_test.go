package app_test

import (
	"testing"

	"kontor/server/servertest"
	"kontor/store/storetest"
)

// Every table states what it holds about persons, and which sections of exports and reports contain it, or why none does. Without
// anything about persons, it says why.
func TestPersonalData_CoversEveryTable(t *testing.T) {
	s := servertest.Start(t)
	stated, sections := map[string]int{}, map[string]bool{}
	for _, section := range s.PersonalSections() {
		sections[section.Name] = false
	}
	for _, table := range s.PersonalData() {
		if (table.Holds == "") != (len(table.Sections) == 0 && table.Unexported == "") || len(table.Sections) > 0 && table.Unexported != "" {
			t.Errorf("%s: name the sections of exports and reports that contain it, or say why there is none", table.Name)
		}
		for _, name := range table.Sections {
			if _, known := sections[name]; !known {
				t.Errorf("%s: no module declares the section %s", table.Name, name)
			}
			sections[name] = true
		}
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
	for name, named := range sections {
		if !named {
			t.Errorf("the section %s has data of no table", name)
		}
	}
}
