package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store/audittrail"
)

const exportPath = "/v1/audit/export"

func TestDownload_IsASignedExport(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	for range 3 {
		admin.Create("/v1/customers", map[string]any{"first_name": "Emma", "last_name": "Keller", "email": "emma@example.ch"})
	}
	var status struct {
		Entries    int64
		ExportKeys []string `json:"export_keys"`
	}
	admin.Do("GET", "/v1/audit/status", nil).Expect(t, 200).Into(t, &status)
	if len(status.ExportKeys) != 1 {
		t.Fatalf("got %+v", status)
	}
	whole := admin.Do("GET", exportPath, nil).Expect(t, 200)
	if got := whole.Header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename="audit-1-`) {
		t.Errorf("the file is %s", got)
	}
	key := strings.Join(status.ExportKeys, " ")
	report, err := audittrail.VerifyExport(strings.NewReader(whole.Body), key)
	if err != nil || report.From != 1 || report.To < status.Entries {
		t.Errorf("got %+v, %v", report, err)
	}
	first := admin.Do("GET", exportPath+"?from=2&to=3", nil).Expect(t, 200).Body
	second := admin.Do("GET", exportPath+"?from=4&to=6", nil).Expect(t, 200).Body
	if report, err := audittrail.VerifyExport(strings.NewReader(first+second), key); err != nil || report.From != 2 || report.To != 6 || report.Heads != 2 {
		t.Errorf("the joined parts: %+v, %v", report, err)
	}
	if _, err := audittrail.VerifyExport(strings.NewReader(second+first), key); err == nil {
		t.Error("parts in the wrong order are accepted")
	}
	if body := admin.Do("GET", "/v1/audit?search.action=audit.export", nil).Expect(t, 200).Body; strings.Contains(body, `"total":0`) {
		t.Errorf("the exports are not in the trail: %s", body)
	}
}

func TestDownload_IsBoundedAndForAuditors(t *testing.T) {
	s := servertest.Start(t)
	for _, query := range []string{"from=0", "from=-1", "from=x", "to=0", "from=5&to=4", "from=1&to=10001", "to=9223372036854775807"} {
		s.Admin().Do("GET", exportPath+"?"+query, nil).ExpectError(t, 400, "common.invalid_input")
	}
	for _, query := range []string{"from=1000000", fmt.Sprintf("from=%d", int64(1)<<62)} {
		s.Admin().Do("GET", exportPath+"?"+query, nil).Expect(t, 404)
	}
	s.Anonymous().Do("GET", exportPath, nil).Expect(t, 401)
	s.User(access.Advisor).Do("GET", exportPath, nil).Expect(t, 403)
	role := s.Admin().Create("/v1/rbac/roles", map[string]any{"name": "Exporter"})
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"role_id": role, "endpoint": "GET " + exportPath}).Expect(t, 201)
	s.User("Exporter").Do("GET", exportPath, nil).Expect(t, 403) // without the right to read the trail
}
