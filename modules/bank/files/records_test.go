package files_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// listed returns the ids of the files that a caller sees at a path.
func listed(t testing.TB, c *servertest.Client, path string) []string {
	t.Helper()
	var list struct{ Files []struct{ ID string } }
	c.Do("GET", path, nil).Expect(t, http.StatusOK).Into(t, &list)
	ids := []string{}
	for _, f := range list.Files {
		ids = append(ids, f.ID)
	}
	return ids
}

func TestFiles_OfMessages(t *testing.T) {
	b := newBank(t)
	other, outsider := b.User(access.Customer), b.User(access.Customer)
	chat := "/v1/chats/" + b.owner.Create("/v1/chats", map[string]any{"participants": []string{other.UserID}})
	message := b.owner.Create(chat+"/messages", map[string]any{"content": "Here it is"})
	upload := chat + "/messages/" + message + "/files"
	pdf := pdfOf(1, 300, 200, 10)
	file := idOf(t, raw(b.owner, upload, "a.pdf", pdf))
	if got := listed(t, other, chat+"/files"); len(got) != 1 || got[0] != file {
		t.Errorf("the other participant sees %v", got)
	}
	servertest.Run(t, b.Server, []servertest.Scenario{
		{Name: "the other participant reads", As: other, Method: "GET", Path: "/v1/files/" + file + "/content", Status: 200},
		{Name: "but does not add to the message of another", As: other.With("Content-Type", "application/pdf"), Method: "POST", Path: upload, Body: pdf, Status: 403},
		{Name: "nor delete", As: other, Method: "DELETE", Path: "/v1/files/" + file, Status: 403},
		{Name: "an outsider reads nothing", As: outsider, Method: "GET", Path: "/v1/files/" + file + "/content", Status: 403},
		{Name: "an outsider lists nothing", As: outsider, Method: "GET", Path: chat + "/files", Status: 403},
		{Name: "a message of no chat", As: b.owner.With("Content-Type", "application/pdf"), Method: "POST",
			Path: chat + "/messages/" + file + "/files", Body: pdf, Status: 404, Contains: []string{"files.record_not_found"}},
		{Name: "the author deletes", As: b.owner, Method: "DELETE", Path: "/v1/files/" + file, Status: 200},
		{Name: "it is gone", As: b.owner, Method: "GET", Path: "/v1/files/" + file, Status: 404},
		{Name: "also its content", As: b.owner, Method: "GET", Path: "/v1/files/" + file + "/content", Status: 404},
	})
	b.expectNothing(t)
}

func TestFiles_OfTasksGoWithThem(t *testing.T) {
	b := newBank(t)
	advisor, assignee, reader := b.User(access.Advisor), b.User(access.Customer), b.User(access.Customer)
	tasks := "/v1/customers/" + b.customer + "/tasks"
	task := tasks + "/" + advisor.Create(tasks, map[string]any{"title": "Sign", "category": "sign"})
	advisor.Do("POST", task+"/assignees", map[string]any{"user_id": assignee.UserID, "weight": 1}).Expect(t, http.StatusCreated)
	pdf := pdfOf(1, 300, 200, 600<<10)
	theirs, own := idOf(t, raw(assignee, task+"/files", "signed.pdf", pdf)), idOf(t, raw(advisor, task+"/files", "contract.pdf", pdf))
	raw(reader, task+"/files", "a.pdf", pdf).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	if got := listed(t, assignee, task+"/files"); len(got) != 2 {
		t.Errorf("the assignee sees %v", got)
	}
	assignee.Do("DELETE", "/v1/files/"+own, nil).Expect(t, http.StatusForbidden)
	advisor.Do("DELETE", task, nil).Expect(t, http.StatusOK)
	for _, id := range []string{theirs, own} {
		b.Admin().Do("GET", "/v1/files/"+id, nil).Expect(t, http.StatusNotFound)
	}
	if err := b.Files.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expectNothing(t)
}

func TestFiles_OfEndedTasksStay(t *testing.T) {
	b := newBank(t)
	advisor := b.User(access.Advisor)
	tasks := "/v1/customers/" + b.customer + "/tasks"
	task := tasks + "/" + advisor.Create(tasks, map[string]any{"title": "Sign", "category": "sign"})
	pdf := pdfOf(1, 300, 200, 10)
	file := idOf(t, raw(advisor, task+"/files", "a.pdf", pdf))
	advisor.Do("PATCH", task+"/status", map[string]any{"status": "completed"}).Expect(t, http.StatusOK)
	raw(advisor, task+"/files", "b.pdf", pdf).ExpectError(t, http.StatusConflict, "tasks.invalid_transition")
	advisor.Do("DELETE", "/v1/files/"+file, nil).ExpectError(t, http.StatusConflict, "tasks.invalid_transition")
}

func TestFiles_EvidenceOfADecisionStays(t *testing.T) {
	b := newBank(t)
	advisor := b.User(access.Advisor)
	pdf := pdfOf(1, 300, 200, 10)
	mistake, evidence := idOf(t, raw(b.owner, b.evidence(), "wrong.pdf", pdf)), idOf(t, raw(b.owner, b.evidence(), "pass.pdf", pdf))
	b.owner.Do("DELETE", "/v1/files/"+mistake, nil).Expect(t, http.StatusOK)
	status := "/v1/customers/" + b.customer + "/kyc/status"
	advisor.Do("PATCH", status, map[string]any{"kyc_status": "in_review"}).Expect(t, http.StatusOK)
	b.owner.Do("DELETE", "/v1/files/"+evidence, nil).ExpectError(t, http.StatusConflict, "files.evidence_locked")
	advisor.Do("DELETE", "/v1/files/"+evidence, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	advisor.Do("PATCH", status, map[string]any{"kyc_status": "rejected", "reason": "unreadable"}).Expect(t, http.StatusOK)
	b.owner.Do("DELETE", "/v1/files/"+evidence, nil).ExpectError(t, http.StatusConflict, "files.evidence_locked")
	b.Clock.Advance(time.Second)
	later := idOf(t, raw(b.owner, b.evidence(), "again.pdf", pdf))
	b.owner.Do("DELETE", "/v1/files/"+later, nil).Expect(t, http.StatusOK)
	b.Admin().Do("DELETE", "/v1/files/"+evidence, nil).Expect(t, http.StatusOK)
}

func TestFiles_AreExportedAndErasedWithTheirPerson(t *testing.T) {
	b := newBank(t)
	pdf := pdfOf(1, 300, 200, 600<<10)
	file := idOf(t, raw(b.owner, b.evidence(), "pass.pdf", pdf))
	other := b.User(access.Customer)
	chat := "/v1/chats/" + b.owner.Create("/v1/chats", map[string]any{"participants": []string{other.UserID}})
	message := b.owner.Create(chat+"/messages", map[string]any{"content": "Here it is"})
	sent := idOf(t, raw(b.owner, chat+"/messages/"+message+"/files", "sent.pdf", pdf))

	export := b.Admin().Do("GET", "/v1/customers/"+b.customer+"/export", nil).Expect(t, http.StatusOK)
	var document struct {
		Files        []struct{ ID, Name string }
		FileContents []struct {
			FileID  string `json:"file_id"`
			Content string
		} `json:"file_contents"`
	}
	if err := json.Unmarshal([]byte(export.Body), &document); err != nil {
		t.Fatal(err)
	}
	var content []byte
	for _, piece := range document.FileContents {
		plain, err := base64.StdEncoding.DecodeString(piece.Content)
		if err != nil || piece.FileID != file {
			t.Fatal(err, piece.FileID)
		}
		content = append(content, plain...)
	}
	if len(document.Files) != 1 || document.Files[0].Name != "pass.pdf" || !bytes.Equal(content, pdf) {
		t.Errorf("the export has %+v and %d bytes", document.Files, len(content))
	}
	if own := b.owner.Do("GET", "/v1/users/"+b.owner.UserID+"/export", nil).Expect(t, http.StatusOK); !strings.Contains(own.Body, "sent.pdf") {
		t.Error("the export of the user has no files of chats")
	}
	b.Admin().Erase("/v1/customers/" + b.customer)
	b.Admin().Do("GET", "/v1/files/"+file, nil).Expect(t, http.StatusNotFound)
	raw(b.owner, b.evidence(), "more.pdf", pdf).ExpectError(t, http.StatusConflict, "privacy.record_erased")
	b.Admin().Erase("/v1/users/" + b.owner.UserID)
	b.Admin().Do("GET", "/v1/files/"+sent, nil).Expect(t, http.StatusNotFound)
	b.expectNothing(t)
	var rest int
	if err := b.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM files WHERE name <> '' OR sha256 <> '' OR key_sealed <> ''`).Scan(&rest); err != nil || rest != 0 {
		t.Errorf("%d files keep a name, digest or key, %v", rest, err)
	}
}
