package qrbill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/bank/invoices/qrbill"
	"kontor/store/testenv"
)

// corpusDir returns the directory of the corpus: the one in the repository, or the one in KONTOR_QR_CORPUS.
func corpusDir() string {
	if dir := os.Getenv("KONTOR_QR_CORPUS"); dir != "" {
		return dir
	}
	return "../../../../testdata/qr"
}

type entry struct {
	File      string
	Category  string
	Kind      string
	Expected  answer
	Strict    string
	Options   struct{ Page int }
	ByPage    map[string]answer `json:"by_page"`
	ByDate    map[string]string `json:"by_date"` // findings as "element rule", by the date of the reading
	IsRequest bool              `json:"is_request"`
}

// answer is the expected result: a payment, an error, or either.
type answer struct {
	Info  *payment `json:"qr_info"`
	Error *struct{ Code string }
	Or    *answer
}

type payment struct {
	IBAN     string
	Creditor struct{ Name, Address, Zip, City, Country string }
	Amount   *json.Number
	Currency string
	Reference,
	Message string
}

func loadCorpus(t testing.TB) []entry {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpusDir(), "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Entries []entry }
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(manifest.Entries, func(e entry) bool { return e.IsRequest })
}

// differs describes how a result differs from the expected one. wrong reports a difference that would result in a wrong
// payment.
func (a answer) differs(result *qrbill.Result, err error) (difference string, wrong bool) {
	if a.Or != nil {
		other := *a.Or
		a.Or = nil
		if difference, _ := other.differs(result, err); difference == "" {
			return "", false
		}
		return a.differs(result, err)
	}
	switch {
	case err != nil && a.Info == nil:
		return "", false
	case err != nil:
		return err.Error(), false
	case a.Info == nil:
		return "read " + result.Bill.IBAN + ", expected an error", true
	}
	got, want := result.Bill, a.Info
	amount := "none"
	if got.Amount != nil {
		amount = strings.TrimSuffix(strings.TrimRight(got.Amount.String(), "0"), ".")
	}
	wanted := "none"
	if want.Amount != nil {
		f, _ := want.Amount.Float64()
		wanted = strconv.FormatFloat(f, 'f', -1, 64)
	}
	wrong = got.IBAN != want.IBAN || amount != wanted || got.Reference != want.Reference
	for _, pair := range [][2]string{
		{got.IBAN, want.IBAN}, {amount, wanted}, {got.Currency, want.Currency}, {got.Reference, want.Reference},
		{got.Message, want.Message}, {got.Creditor.Name, want.Creditor.Name}, {got.Creditor.Address, want.Creditor.Address},
		{got.Creditor.Zip, want.Creditor.Zip}, {got.Creditor.City, want.Creditor.City}, {got.Creditor.Country, want.Creditor.Country},
	} {
		if pair[0] != pair[1] {
			return fmt.Sprintf("got %q, want %q", pair[0], pair[1]), wrong
		}
	}
	return "", false
}

// tally is the result of one category.
type tally struct {
	files, right int
	took         []time.Duration
}

// sample returns the files that the tier of the tests reads: by default the first one of each category, without those that
// TestRead_ReportsTheReason reads.
func sample(entries []entry) []entry {
	if testenv.Runs(testenv.Full) {
		return entries
	}
	seen := map[string]bool{"bomb": true}
	return slices.DeleteFunc(entries, func(e entry) bool {
		known := seen[e.Category]
		seen[e.Category] = true
		return known
	})
}

// TestCorpus reads the files of the corpus, with and without strict mode, and compares the results with the expected ones.
// With -v it prints rates and times per category.
func TestCorpus(t *testing.T) {
	entries := sample(loadCorpus(t))
	reader := newReader(t, qrbill.Config{Wait: time.Hour})
	warm(t, reader, entries)

	var mutex sync.Mutex
	tallies := map[string]*tally{}
	count := func(category string, took time.Duration, right bool) {
		mutex.Lock()
		defer mutex.Unlock()
		if tallies[category] == nil {
			tallies[category] = &tally{}
		}
		c := tallies[category]
		c.files++
		c.took = append(c.took, took)
		if right {
			c.right++
		}
	}
	work := make(chan entry)
	var group sync.WaitGroup
	for range workers() {
		group.Go(func() {
			for e := range work {
				took, right := checkEntry(t, reader, e)
				count(e.Category, took, right)
			}
		})
	}
	for _, e := range entries {
		work <- e
	}
	close(work)
	group.Wait()
	report(t, tallies)
	reportMemory(t)
}

func readFile(t testing.TB, e entry) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(corpusDir(), e.File))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// expectedLoss are the categories with unreadable files.
var expectedLoss = map[string]bool{"hard": true, "heic": true}

func checkEntry(t *testing.T, reader *qrbill.Reader, e entry) (time.Duration, bool) {
	file := readFile(t, e)
	elapsed := stopwatch()
	result, err := reader.Read(context.Background(), file, qrbill.Options{Page: e.Options.Page})
	took := elapsed()
	difference, wrong := e.Expected.differs(result, err)
	switch {
	case wrong:
		t.Errorf("%s: WRONG PAYMENT: %s", e.File, difference)
	case difference != "" && expectedLoss[e.Category]:
		t.Logf("%s: %s", e.File, difference)
	case difference != "":
		t.Errorf("%s: %s", e.File, difference)
	}
	if os.Getenv("KONTOR_QR_FILES") != "" {
		t.Logf("%-45s %6d ms %v", e.File, took.Milliseconds(), err)
	}
	if err == nil {
		checkStrict(t, reader, e, file, result)
	}
	for page, want := range e.ByPage {
		n, _ := strconv.Atoi(page)
		result, err := reader.Read(context.Background(), file, qrbill.Options{Page: n})
		if difference, _ := want.differs(result, err); difference != "" {
			t.Errorf("%s, page %d: %s", e.File, n, difference)
		}
	}
	return took, difference == ""
}

// checkStrict checks strict mode. It reads a file again only where strict mode must reject it.
func checkStrict(t *testing.T, reader *qrbill.Reader, e entry, file []byte, result *qrbill.Result) {
	switch e.Strict {
	case "accept":
		if broken := qrbill.Violations(result.Findings); len(broken) > 0 {
			t.Errorf("%s: strict mode rejects: %v", e.File, broken)
		}
	case "reject":
		_, err := reader.Read(context.Background(), file, qrbill.Options{Page: e.Options.Page, Strict: true})
		if qrbill.ReasonOf(err) != qrbill.InvalidPayload {
			t.Errorf("%s: strict mode: got %v", e.File, err)
		}
	}
}

// TestCorpus_FollowsTheStandardOfTheDay reads the files whose findings depend on the date.
func TestCorpus_FollowsTheStandardOfTheDay(t *testing.T) {
	var now time.Time
	reader := newReader(t, qrbill.Config{Wait: time.Hour, Now: func() time.Time { return now }})
	for _, e := range loadCorpus(t) {
		for date, want := range e.ByDate {
			var err error
			if now, err = time.Parse(time.DateOnly, date); err != nil {
				t.Fatal(err)
			}
			result, err := read(reader, readFile(t, e), qrbill.Options{})
			if err != nil {
				t.Fatalf("%s: %v", e.File, err)
			}
			var got []string
			for _, f := range result.Findings {
				got = append(got, f.Element+" "+string(f.Rule))
			}
			if joined := strings.Join(got, ","); joined != want {
				t.Errorf("%s on %s: got %q, want %q", e.File, date, joined, want)
			}
			_, err = read(reader, readFile(t, e), qrbill.Options{Strict: true})
			if rejected := qrbill.ReasonOf(err) == qrbill.InvalidPayload; rejected != strings.HasSuffix(want, string(qrbill.RuleQRCurrency)) {
				t.Errorf("%s on %s, strict: %v", e.File, date, err)
			}
		}
	}
}

func report(t *testing.T, tallies map[string]*tally) {
	var all []time.Duration
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-26s %5s %5s %7s %9s %9s\n", "category", "files", "right", "rate", "median", "slowest")
	files, right := 0, 0
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		c := tallies[name]
		slices.Sort(c.took)
		all = append(all, c.took...)
		files, right = files+c.files, right+c.right
		fmt.Fprintf(&text, "%-26s %5d %5d %6.1f%% %6d ms %6d ms\n", name, c.files, c.right, 100*float64(c.right)/float64(c.files),
			c.took[len(c.took)/2].Milliseconds(), c.took[len(c.took)-1].Milliseconds())
	}
	slices.Sort(all)
	fmt.Fprintf(&text, "%-26s %5d %5d %6.1f%% %6d ms, 95%%: %d ms\n", "all", files, right, 100*float64(right)/float64(files),
		all[len(all)/2].Milliseconds(), all[len(all)*95/100].Milliseconds())
	t.Log(text.String())
}
