package screening_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// syllables give names of which some are alike.
var syllables = []string{"ba", "ri", "no", "ste", "lu", "ka", "mir", "to", "ven", "da", "sho", "pel", "gu", "ran", "ti", "wo", "zel", "an", "er", "im"}

// invented returns the nth of some 60 million names.
func invented(n int) string {
	given := syllables[n%20] + syllables[n/20%20] + syllables[n/7%20]
	family := syllables[n/400%20] + syllables[n/3%20] + syllables[n/11%20] + syllables[n/8000%20]
	return strings.ToUpper(given[:1]) + given[1:] + " " + strings.ToUpper(family[:1]) + family[1:]
}

// BenchmarkRescreen compares 2,000 customers with 20,000 names. Few words are the same, so that it is slower than with the names of a
// real bank. The processor time includes that of the test.
func BenchmarkRescreen(b *testing.B) {
	const customers, entries = 2_000, 20_000
	s := servertest.Start(b)
	advisor := s.User(access.Advisor)
	servertest.Load(b, s.Address, customers, 201, func(i int) []byte {
		given, family, _ := strings.Cut(invented(entries*3+i*37), " ")
		return advisor.Request("POST", "/v1/customers", fmt.Sprintf(`{"first_name":%q,"last_name":%q,"date_of_birth":"1990-01-01","email":"x%d@example.com"}`, given, family, i))
	})
	var list strings.Builder
	list.WriteString(sample)
	for i := range entries {
		list.WriteString(line(fmt.Sprintf("N%d", i), "Person", invented(i*29), "1951-02-03", "ch"))
	}
	admin, used := s.Admin(), time.Duration(0)
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		load(b, admin, fmt.Sprint("Sample", n%2), sample+line("X", "Person", "Somebody Else", "", "")).Expect(b, 201)
		load(b, admin, "Large", list.String()+line("Y", "Person", fmt.Sprint("Nobody ", n), "", "")).Expect(b, 201)
		check(b, advisor, object{"name": "Somebody"}) // the index is complete
		start := servertest.ProcessorTime(b)
		b.StartTimer()
		rescreen(b, s)
		used += servertest.ProcessorTime(b) - start
	}
	b.ReportMetric(float64(customers*b.N)/b.Elapsed().Seconds(), "customers/s")
	b.ReportMetric(float64(customers*b.N)/used.Seconds(), "customers/processor-s")
}
