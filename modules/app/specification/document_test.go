package specification_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere are statements that other tests prove, because they need more than requests to one running server. The value is the folder
// and the name of the test.
var elsewhere = map[string]string{
	"the service is written and the response is 200 with the body null":                              "modules/reach/notifications TestMarkRead_DependsOnThePresenceOfTheMember",
	"event: close, data object with member `reason` (value server_shutdown)":                         "modules/reach/notifications TestStream_SendsCloseAtShutdown",
	"a comment line starting with a colon and the word keepalive":                                    "modules/reach/notifications TestStream_SendsHeartbeats",
	"The server sets no write timeout on the stream":                                                 "server/sse TestSend_SetsNoDeadline",
	"disconnected clients are cleaned up automatically":                                              "modules/reach/notifications TestStream_ReleasesTheResourcesOfDeadClients",
	"service shutting down: object with overall_status":                                              "server TestShutdown_AnswersNewRequestsWithTheHealthMap",
	"authentication cache unavailable (stream route)":                                                "modules/reach/notifications TestStream_AnswersWithTheErrorEnvelopeIfTheDatabaseFails",
	"every 25 seconds by default (setting notifications.sse.heartbeat_seconds)":                      "server/settings TestLoad_Defaults",
	"| 500 | common.server_error | internal error |":                                                 "server TestServe_ChecksInTheSpecifiedOrder",
	"processing runs through a queue with retries for failed deliveries":                             "modules/reach/deliveries TestQueue_RetriesWithGrowingPauses",
	"a cooling-off period that grows with each attempt":                                              "modules/identity/auth TestLockout_DoublesUpToTheLongest",
	"API endpoints and record types (users, customers, accounts and so on) are registered centrally": "modules/app TestTable_MatchesTheGoldenFile",
	"An error created without a status is answered as 500":                                           "server TestServe_ChecksInTheSpecifiedOrder",
	"Rate limit (general rules for public endpoints, stored per-endpoint rules for private ones)":    "server TestLimitCaller_AppliesChangedRulesToTheNextRequest",
}

// Statements without a duty of their own: headings of tables, what the document leaves open, and sentences about the document.
var without = regexp.MustCompile(`^(#.*|\|[-|]+\||\| (Field|Resource|State|Method|Name|Step|Frame|Member|Status|Subject|Route) \|.*|` +
	`[^.]*: not shown\.|The parts.*|General conventions:|Rules:|Statuses and codes:|Order of checks on each request:|PersonaData \(common.*|` +
	`(Query parameters|Query parameters of GET /v1/payers|Envelope for errors):|.*callbacks to other systems: not shown\.|Rendering of title and content differs per route:|[-\w/ ,]+ transitions: not shown\.)$`)

// TestDocument_EachLineHasAStatement fails for a line of the specification that no statement quotes, and for a quote that is not in it.
func TestDocument_EachLineHasAStatement(t *testing.T) {
	lines := document(t)
	quoted := make([]bool, len(lines))
	mark := func(quote string) {
		t.Helper()
		found := false
		for i, line := range lines {
			if strings.Contains(line, quote) {
				quoted[i], found = true, true
			}
		}
		if !found {
			t.Errorf("the specification does not say %q", quote)
		}
	}
	for _, part := range parts {
		for _, s := range part {
			mark(s.quote)
		}
	}
	for quote, test := range elsewhere {
		mark(quote)
		if !testExists(t, test) {
			t.Errorf("%q: there is no test %s", quote, test)
		}
	}
	for i, line := range lines {
		if !quoted[i] && strings.TrimSpace(line) != "" && !without.MatchString(line) {
			t.Errorf("line %d has no statement: %s", i+1, line)
		}
	}
}

// testExists looks for a test by its folder and name.
func testExists(t *testing.T, test string) bool {
	t.Helper()
	folder, name, _ := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join("../../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "func "+name+"(") {
			return true
		}
	}
	return false
}
