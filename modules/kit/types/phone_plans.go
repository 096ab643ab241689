package types

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// packedPlans are the numbering plans of all countries, made by TestPhonePlans from the metadata of libphonenumber. A line is
// a plan, and begins with the country code. Countries with the same code follow each other, the main one first. The fields are
// separated by tabs:
//
//	country code, region, pattern of leading digits that only this region has, pattern of the national prefix, what replaces the
//	prefix, possible lengths, lengths of numbers that work only within an area, pattern of all numbers
//
// Each further field is a pattern of numbers that are in use, after their lengths and a colon.
//
//go:embed phone_plans.txt.gz
var packedPlans []byte

// phonePlans unpacks the plans at the first number, which takes a millisecond. They stay in memory: 86 kB.
var phonePlans = sync.OnceValue(func() string {
	var plans []byte
	reader, err := gzip.NewReader(bytes.NewReader(packedPlans))
	if err == nil {
		plans, err = io.ReadAll(reader)
	}
	if err != nil {
		panic("phone_plans.txt.gz: " + err.Error()) // a test reads them
	}
	return string(plans)
})

// phonePlan is the numbering plan of a country.
type phonePlan struct {
	leading         *regexp.Regexp // nil: the patterns alone decide
	prefix          *regexp.Regexp // nil: none
	replacement     string
	possible, local []int // lengths, in ascending order
	general         *regexp.Regexp
	used            []phoneRange
}

// phoneRange is a set of numbers that are in use, such as those of mobile telephones.
type phoneRange struct {
	lengths []int // empty: all possible ones
	pattern *regexp.Regexp
}

// readPlans holds the plans that were used, by country code. There are about 220 codes.
var readPlans sync.Map

// plansOf returns the plans with a country code, or nil for an unknown code.
func plansOf(code string) []*phonePlan {
	if plans, ok := readPlans.Load(code); ok {
		return plans.([]*phonePlan)
	}
	var plans []*phonePlan
	for line := range strings.SplitSeq(phonePlans(), "\n") {
		if rest, ok := strings.CutPrefix(line, code+"\t"); ok {
			plans = append(plans, readPlan(strings.Split(rest, "\t")))
		}
	}
	if plans != nil {
		readPlans.Store(code, plans)
	}
	return plans
}

// readPlan reads the fields after the country code.
func readPlan(fields []string) *phonePlan {
	p := &phonePlan{
		leading: beginning(fields[1]), prefix: beginning(fields[2]), replacement: fields[3],
		possible: readLengths(fields[4]), local: readLengths(fields[5]), general: whole(fields[6]),
	}
	for _, field := range fields[7:] {
		lengths, pattern, _ := strings.Cut(field, ":")
		p.used = append(p.used, phoneRange{readLengths(lengths), whole(pattern)})
	}
	return p
}

func beginning(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	return regexp.MustCompile("^(?:" + pattern + ")")
}

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")$") }

func readLengths(text string) (lengths []int) {
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(word)
		if err != nil {
			panic("phone_plans.txt: " + err.Error()) // a test reads all plans
		}
		lengths = append(lengths, n)
	}
	return lengths
}

// stripPrefix removes the national prefix, or replaces it where the plan demands that. A number that would not be valid any more
// stays as it is.
func (p *phonePlan) stripPrefix(number string) string {
	if p.prefix == nil {
		return number
	}
	found := p.prefix.FindStringSubmatchIndex(number)
	if found == nil {
		return number
	}
	stripped := number[found[1]:]
	if p.replacement != "" && found[len(found)-2] >= 0 { // the last group has matched
		stripped = p.prefix.ReplaceAllString(number, p.replacement)
	}
	if p.general.MatchString(number) && !p.general.MatchString(stripped) {
		return number
	}
	return stripped
}

// isPossible reports whether a number has a length that is possible, also from outside its area.
func (p *phonePlan) isPossible(number string) bool {
	return !slices.Contains(p.local, len(number)) && slices.Contains(p.possible, len(number))
}

func (p *phonePlan) isTooLong(number string) bool {
	n := len(number)
	return !slices.Contains(p.local, n) && n > p.possible[len(p.possible)-1]
}

// isAssigned reports whether the number is in use in one of the countries with its code.
func isAssigned(plans []*phonePlan, number string) bool {
	if len(plans) == 1 {
		return plans[0].isUsed(number)
	}
	for _, p := range plans {
		if p.leading == nil && p.isUsed(number) {
			return true
		}
		if p.leading != nil && p.leading.MatchString(number) {
			return p.isUsed(number)
		}
	}
	return false
}

func (p *phonePlan) isUsed(number string) bool {
	if !slices.Contains(p.possible, len(number)) || !p.general.MatchString(number) {
		return false
	}
	return slices.ContainsFunc(p.used, func(r phoneRange) bool {
		return (len(r.lengths) == 0 || slices.Contains(r.lengths, len(number))) && r.pattern.MatchString(number)
	})
}
