package names_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kontor/modules/kit/names"
)

// BenchmarkQuality prints precision, recall and F1 for the public test sets, by threshold.
func BenchmarkQuality(b *testing.B) {
	for b.Loop() {
		fmt.Printf("\n%-10s %9s %9s %9s %12s %12s %12s %14s\n", "threshold", "precision", "recall", "F1", "p. (people)", "r. (people)", "F1 (people)", "sure failures")
		for _, threshold := range []float64{0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9} {
			all, people, strong := measurePairs(b, threshold)
			fmt.Printf("%-10.2f %9.3f %9.3f %9.3f %12.3f %12.3f %12.3f %14d\n", threshold, all.precision(), all.recall(), all.f1(),
				people.precision(), people.recall(), people.f1(), len(strong))
		}
		x, rows := unList(b)
		fmt.Printf("UN names found: %.1f %%, disturbed %.1f %%; clean people who alert: %.2f %%\n\n",
			100*measureRecall(x, rows, 0), 100*measureRecall(x, rows, 1), 100*measureAlerts(b, x, 1))
	}
}

// BenchmarkSearch measures one check against 200,000 names.
func BenchmarkSearch(b *testing.B) {
	x, queries := largeIndex(b)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		x.Search(queries[i%len(queries)], names.Person, names.DefaultThreshold, nil)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
}

// largeIndex returns an index of 200,000 invented names of the words of the test sets, and names to search for.
func largeIndex(b *testing.B) (*names.Index, []string) {
	b.Helper()
	var given, family, queries []string
	for i, r := range readRows(b, "clean.csv.gz") {
		words := strings.Fields(r[0])
		given, family = append(given, words[0]), append(family, words[len(words)-1])
		if i%20 == 0 {
			queries = append(queries, r[0])
		}
	}
	for i, r := range readRows(b, "un.csv") {
		words := strings.Fields(r[0])
		given, family = append(given, words[0]), append(family, words[len(words)-1])
		if i%2 == 0 {
			queries = append(queries, r[1])
		}
	}
	build := names.NewBuilder()
	for i := range 200_000 {
		build.Add(i, given[i%len(given)]+" "+given[i*7919%len(given)]+" "+family[i*104729%len(family)], names.Person)
	}
	return build.Build(), queries
}
