package names

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// DefaultThreshold is the score from which two names may mean the same. See docs/screening.md.
const DefaultThreshold = 0.7

// How much of a score is lost. Only these figures were fitted to the test sets, and none of them to a single row.
const (
	lostByConflict  = 0.3  // parts remain on both sides, however many match
	lostPerConflict = 1.0  // times the share of such parts
	lostPerExtra    = 0.4  // times the share of parts that only one side has
	mostLostByExtra = 0.25 // so that many further names do not hide one
	lostByForm      = 0.15 // the organisation types differ
	lostByNumber    = 0.2  // the numbers differ
	scoreOfWhole    = 0.9  // the names without spaces differ by no more than two letters
	lostPerLetter   = 0.08 // each of these letters
)

// Weigh returns the weight of a word from 0 to 1, by how rare it is. Nil weighs all words the same.
type Weigh func(text string) float64

// pair is a part of each name that may match, or several parts of one that are one of the other.
type pair struct {
	a, b   span
	score  float64
	how    How
	weight float64
}

// span is a sequence of parts.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// CompareTexts compares two texts, of which each may hold several names ([Split]). It returns the score of the two that are most alike.
func CompareTexts(query, entry string, kind Kind, weigh Weigh) (best float64, matched []Match) {
	for _, q := range compared(query) {
		a := Parse(q, kind)
		for _, e := range compared(entry) {
			if score, matches := Compare(a, Parse(e, kind), weigh); score > best {
				best, matched = score, matches
			}
		}
	}
	return best, matched
}

// Compare returns how alike two names are, from 0 to 1, and which parts matched. The order of the names does not matter.
func Compare(query, entry Name, weigh Weigh) (float64, []Match) {
	if query.Empty() || entry.Empty() {
		return 0, nil
	}
	score, chosen := align(query.parts, entry.parts, query.kind != Person && entry.kind != Person, weigh)
	if whole := wholeScore(query, entry); whole > score {
		return whole, []Match{{query.written(), entry.written(), whole, Spelling}}
	}
	matched := make([]Match, len(chosen))
	for i, p := range chosen {
		matched[i] = Match{written(query.parts, p.a), written(entry.parts, p.b), round(p.score), p.how}
	}
	return score, matched
}

// round keeps two decimals, which is more than a score means.
func round(score float64) float64 { return math.Round(score*100) / 100 }

func (n Name) written() string { return written(n.parts, span{0, len(n.parts)}) }

func written(parts []part, s span) string {
	texts := make([]string, 0, s.len())
	for _, p := range parts[s.from:s.to] {
		texts = append(texts, p.written)
	}
	return strings.Join(texts, " ")
}

// wholeScore compares the names as one word each. It finds spaces in the wrong place, and short parts in which a letter differs.
func wholeScore(a, b Name) float64 {
	if !sameNumbers(a.parts, b.parts) {
		return 0
	}
	limit, abjads := 2, abjad(a.parts) && abjad(b.parts)
	if slices.ContainsFunc(a.parts, isStrict) || slices.ContainsFunc(b.parts, isStrict) {
		limit = 0
	}
	best := 0.0
	for _, x := range a.wholes {
		for _, y := range b.wholes {
			shortest := min(len(x), len(y))
			if abjads {
				shortest /= 2 // two letters of a text without vowels are a large part of it
			}
			if shortest < 8 {
				continue
			}
			if d := distance(x, y, limit); d <= limit && d*4 <= shortest {
				best = max(best, scoreOfWhole-lostPerLetter*float64(d))
			}
		}
	}
	if best == 0 || best < scoreOfWhole && a.kind != Person && otherShortPart(a.parts, b.parts) {
		return 0
	}
	if differ(a.parts, b.parts, form) {
		best -= lostByForm
	}
	return round(best)
}

// otherShortPart reports whether names of organisations of the same words differ in a short part as a whole: "BWI Aviation" is not "BAE Aviation".
func otherShortPart(a, b []part) bool {
	const shortest, limit = 4, 2
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if n := max(len(a[i].plain), len(b[i].plain)); n <= shortest && distance(a[i].plain, b[i].plain, limit) > 1 {
			return true
		}
	}
	return false
}

func hasVowels(p part) bool { return p.vowels }

func isStrict(p part) bool { return p.strict || p.exact }

func abjad(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.abjad })
}

// sameNumbers reports whether no number of the names differs.
func sameNumbers(a, b []part) bool {
	return slices.Equal(numbers(a), numbers(b))
}

func numbers(parts []part) []string {
	var all []string
	for _, p := range parts {
		if p.class == number {
			all = append(all, p.text)
		}
	}
	slices.Sort(all)
	return all
}

// align finds the best pairs of parts and returns the score of the names. Acronyms are the initials of three words or more.
func align(a, b []part, acronyms bool, weigh Weigh) (float64, []pair) {
	pairs := candidates(a, b, acronyms)
	slices.SortStableFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(surely(y), surely(x)), cmp.Compare(y.score*y.weight, x.score*x.weight))
	})
	usedA, usedB := make([]bool, len(a)), make([]bool, len(b))
	var chosen []pair
	for _, p := range pairs {
		if anyUsed(usedA, p.a) || anyUsed(usedB, p.b) {
			continue
		}
		mark(usedA, p.a)
		mark(usedB, p.b)
		chosen = append(chosen, p)
	}
	slices.SortFunc(chosen, func(x, y pair) int { return cmp.Compare(x.a.from, y.a.from) })
	return score(a, b, usedA, usedB, chosen, weigh), chosen
}

// surely returns 1 for single parts that are the same, which are paired before all others.
func surely(p pair) int {
	if p.score == 1 && p.how != Joined {
		return 1
	}
	return 0
}

func anyUsed(used []bool, s span) bool { return slices.Contains(used[s.from:s.to], true) }

func mark(used []bool, s span) {
	for i := s.from; i < s.to; i++ {
		used[i] = true
	}
}

// score weighs what matched against what did not.
func score(a, b []part, usedA, usedB []bool, chosen []pair, weigh Weigh) float64 {
	var matched, lost float64
	words := 0
	for _, p := range chosen {
		weight := (heft(a[p.a.from:p.a.to], weigh) + heft(b[p.b.from:p.b.to], weigh)) / 2
		matched += weight
		lost += weight * (1 - p.score)
		if p.how != Initial && (hasWord(a[p.a.from:p.a.to]) || hasWord(b[p.b.from:p.b.to])) {
			words += max(p.a.len(), p.b.len())
		}
	}
	if matched == 0 {
		return 0
	}
	restA, restB := rest(a, usedA, weigh), rest(b, usedB, weigh)
	conflict, extra := min(restA, restB), max(restA, restB)-min(restA, restB)
	total := matched + conflict + extra
	s := 1 - (lost+lostPerConflict*conflict)/total - min(mostLostByExtra, lostPerExtra*extra/total)
	if conflict > 0.4 {
		s -= lostByConflict
	}
	if words == 0 && hasWord(a) && hasWord(b) || words < 2 && extra > 0.7 { // initials, or a single word of several, are not enough
		s -= lostByConflict
	}
	if differ(a, b, form) {
		s -= lostByForm
	}
	if differ(a, b, number) {
		s -= lostByNumber
	} else if !sameNumbers(a, b) {
		s -= lostByNumber / 2
	}
	return round(min(1, max(0, s)))
}

// heft returns the weight of parts.
func heft(parts []part, weigh Weigh) float64 {
	total := 0.0
	for _, p := range parts {
		if p.class == word && weigh != nil {
			total += p.weight * weigh(p.text)
			continue
		}
		total += p.weight
	}
	return total
}

// rest returns the weight of the parts without a match. Forms and numbers count by themselves.
func rest(parts []part, used []bool, weigh Weigh) float64 {
	total := 0.0
	for i, p := range parts {
		if !used[i] && isWord(p) {
			total += heft(parts[i:i+1], weigh)
		}
	}
	return total
}

// differ reports whether both names have parts of a class, and none in common.
func differ(a, b []part, c class) bool {
	found := false
	for _, x := range a {
		for _, y := range b {
			if x.class != c || y.class != c {
				continue
			}
			if x.text == y.text {
				return false
			}
			found = true
		}
	}
	return found
}

func hasWord(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.class == word })
}

func isWord(p part) bool { return p.class == word || p.class == common }

// candidates returns all pairs of parts that match in some way.
func candidates(a, b []part, acronyms bool) []pair {
	var pairs []pair
	for i := range a {
		for j := range b {
			if s, how := similarity(&a[i], &b[j]); s > 0 {
				pairs = append(pairs, pair{span{i, i + 1}, span{j, j + 1}, s, how, (a[i].weight + b[j].weight) / 2})
			}
		}
	}
	return slices.Concat(pairs, joins(a, b, acronyms, false), joins(b, a, acronyms, true))
}

// joins returns the pairs of which one side is several parts: words written apart, or the initials of words.
func joins(a, b []part, acronyms, swapped bool) []pair {
	const most = 3
	var pairs []pair
	add := func(x, y span, s float64, how How) {
		weight := heft(a[x.from:x.to], nil)
		if swapped {
			x, y = y, x
		}
		pairs = append(pairs, pair{x, y, s, how, weight})
	}
	ways, abjads := readingsOf(a), slices.ContainsFunc(a, hasVowels) || slices.ContainsFunc(b, hasVowels)
	for i := range a {
		for n := 1; n <= mostSpelled && i+n <= len(a); n++ {
			span := a[i : i+n]
			if p := &span[n-1]; p.class == form || p.class == number || p.class == title || n > most && !spelled(span) {
				break
			}
			if n == 1 {
				continue
			}
			for k := range ways {
				if k > 0 && k >= readingsOf(span) {
					break
				}
				joined := join(span, k, abjads)
				for j := range b {
					s, how := joinedScore(&joined, &b[j])
					if s == 0 || how == Variant && !acronyms || s < 1 && slices.ContainsFunc(span, func(p part) bool { return alone(&p, &b[j]) }) {
						continue
					}
					add(spanOf(i, n), spanOf(j, 1), s, how)
				}
			}
		}
	}
	return pairs
}

func spanOf(from, n int) span { return span{from, from + n} }

// spelled reports whether parts may be the letters of a word.
func spelled(parts []part) bool {
	return !slices.ContainsFunc(parts, func(p part) bool { return !short(&p) })
}

// joinedParts are several parts as one word.
type joinedParts struct {
	text, key, bones string
	loose            string // the sounds without an article between the parts
	initials         string
	strict, exact    bool
	abjad            bool
	ended            bool // without a particle at the end
}

func join(parts []part, k int, abjads bool) (j joinedParts) {
	loose := ""
	for i := range parts {
		p := parts[i].as(k)
		j.text += p.plain
		j.initials += p.plain[:1]
		j.exact, j.strict = j.exact || p.exact, j.strict || p.strict
		j.abjad = j.abjad || p.vowels
		if i == 0 || p.class != particle || p.text != "al" {
			loose += p.plain
		}
	}
	j.ended = parts[len(parts)-1].class != particle
	if !j.exact {
		j.key = sounds(j.text)
		if abjads {
			j.bones = consonants(j.text)
		}
		if loose != j.text {
			j.loose = sounds(loose)
		}
	}
	return j
}

// alone reports whether a part matches without the parts beside it.
func alone(p, with *part) bool {
	s, _ := similarity(p, with)
	return s > 0
}

// joinedScore compares several parts with one: as one text, by its sounds, and as initials.
func joinedScore(j *joinedParts, p *part) (best float64, how How) {
	if p.class == form || p.class == number || p.class == title || p.class == particle {
		return 0, ""
	}
	for k := range len(p.others) + 1 {
		if s, h := j.like(p.as(k)); s > best {
			best, how = s, h
		}
	}
	return best, how
}

func (j *joinedParts) like(p *part) (float64, How) {
	long := len(p.plain) > 5 && len(j.text) > 5
	switch {
	case p.plain == j.text:
		return 1, Joined
	case p.exact || j.exact:
		return 0, ""
	case p.strict || j.strict:
		if len(j.text) > 5 && sameSyllable(p.plain, j.text, p.key, j.key) {
			return 0.9, Joined
		}
		return 0, ""
	case len(j.text) > 5 && p.key == j.key:
		return 0.9, Joined
	case long && distance(p.plain, j.text, 1) <= 1:
		return 0.9, Joined
	case j.ended && long && j.loose != "" && distance(p.key, j.loose, 1) <= 1,
		j.ended && p.vowels != j.abjad && len(p.bones) > 3 && p.bones == j.bones && sameEnds(p.plain, j.text):
		return 0.85, Joined
	case p.plain == j.initials && len(j.initials) > 2:
		return 0.8, Variant
	case p.plain == j.initials:
		return 0.8, Initial
	default:
		return 0, ""
	}
}

// similarity returns how alike two parts are, and how they match. It is 0 for parts that do not.
func similarity(a, b *part) (float64, How) {
	if a.class == form || b.class == form || a.class == number || b.class == number {
		if a.class == b.class && a.text == b.text {
			return 1, Variant
		}
		return 0, ""
	}
	if a.text == b.text {
		if a.class == b.class && !strings.EqualFold(a.written, b.written) && a.class != word {
			return 1, Variant
		}
		return 1, Exact
	}
	if a.class == title || b.class == title || a.class == particle || b.class == particle {
		return 0, ""
	}
	return wordSimilarity(a, b)
}

// wordSimilarity compares two words that differ, in all their readings.
func wordSimilarity(a, b *part) (best float64, how How) {
	if a.exact || b.exact {
		return 0, ""
	}
	for i := range len(a.others) + 1 {
		for k := range len(b.others) + 1 {
			if s, h := readSimilarity(a.as(i), b.as(k)); s > best {
				best, how = s, h
			}
		}
	}
	return best, how
}

func readSimilarity(a, b *part) (float64, How) {
	if a.plain == b.plain {
		return 1, Exact
	}
	if a.strict || b.strict {
		if sameSyllable(a.plain, b.plain, a.key, b.key) {
			return 0.92, Sound
		}
		return 0, ""
	}
	if s, how := initial(a, b); how != "" {
		return s, how
	}
	if nicknames(a.text, b.text) {
		return 0.95, Variant
	}
	if a.abjad != b.abjad && len(a.bones) > 1 && a.bones == b.bones && (!a.vowels && !b.vowels || sameEnds(a.plain, b.plain)) {
		return 0.88, Sound
	}
	best, how := 0.0, How("")
	if a.key == b.key && len(a.key) > 2 {
		best, how = 0.92, Sound
	}
	longest := max(len(a.text), len(b.text))
	limit := edits(longest)
	if a.abjad && b.abjad {
		limit = min(1, limit)
	}
	if d := distance(a.text, b.text, limit); d <= limit && d*3 <= longest {
		if s := 1 - float64(d)/float64(longest); s > best {
			best, how = s, Spelling
		}
	}
	if best == 0 && len(a.key) > 4 && len(b.key) > 4 && distance(a.key, b.key, 1) == 1 {
		best, how = 0.75, Sound
	}
	return best, how
}

// sameSyllable reports whether two words are spellings of the same syllables.
func sameSyllable(a, b, keyA, keyB string) bool {
	const most = 2 // letters more
	return keyA == keyB && len(keyA) > 1 && a[0] == b[0] && max(len(a), len(b))-min(len(a), len(b)) <= most
}

// sameEnds reports whether two words agree in that they begin, and end, with a vowel: abjads write those. Y and w can be either, and an h at
// the end is not spoken.
func sameEnds(a, b string) bool {
	return agree(a[0], b[0], "aeiou", "yw") && agree(a[len(a)-1], b[len(b)-1], "aeiouywh", "")
}

func agree(a, b byte, vowels, either string) bool {
	if strings.IndexByte(either, a) >= 0 || strings.IndexByte(either, b) >= 0 {
		return true
	}
	return strings.IndexByte(vowels, a) >= 0 == (strings.IndexByte(vowels, b) >= 0)
}

// edits returns how many letters of a part may differ. Short parts are strict.
func edits(length int) int {
	switch {
	case length < 3:
		return 0
	case length < 5:
		return 1
	default:
		return 2
	}
}

// initial compares a single letter with a word.
func initial(a, b *part) (float64, How) {
	if len(a.plain) > 1 && len(b.plain) > 1 {
		return 0, ""
	}
	if a.plain[0] == b.plain[0] && a.class == word && b.class == word {
		return 0.8, Initial
	}
	return 0, Initial
}

// nicknames reports whether two given names are forms of one.
func nicknames(a, b string) bool {
	nick := words().nick
	for _, full := range nick[a] {
		if full == b || slices.Contains(nick[full], b) && full != a && slices.Contains(nick[full], a) && slices.Contains(nick[b], full) {
			return true
		}
	}
	return false
}
