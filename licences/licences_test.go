package licences_test

import (
	"bytes"
	"os"
	"testing"

	"kontor/licences"
)

func TestKontor_IsTheLicenceOfTheRepository(t *testing.T) {
	want, err := os.ReadFile("../LICENSE")
	if err != nil || !bytes.Equal(licences.Kontor, want) {
		t.Errorf("licences/LICENSE differs from LICENSE (%v): copy it", err)
	}
}
