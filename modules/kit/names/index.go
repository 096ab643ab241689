package names

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Index finds names in a list. It never changes: a new list is a new index. The names are found by their words, and words by their
// letters, sounds, consonants and short forms.
type Index struct {
	names    []indexed
	terms    map[string]uint32
	texts    []string            // of the terms
	postings [][]uint32          // names by term
	keys     map[string][]uint32 // terms by sound
	bones    map[string][]uint32 // terms by their consonants
	grams    map[gram][]uint32
	scratch  sync.Pool
}

// indexed is a name as it was added. It is parsed again where it is compared: parsed names take ten times the memory.
type indexed struct {
	text  string
	entry int
	kind  Kind
}

// Builder collects the names of an index.
type Builder struct{ index *Index }

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	return &Builder{&Index{terms: map[string]uint32{}, keys: map[string][]uint32{}, bones: map[string][]uint32{}, grams: map[gram][]uint32{}}}
}

// Add adds a name of an entry. An entry may have several names, and a text may hold several ([Split]). Texts without letters are left out.
func (b *Builder) Add(entry int, text string, kind Kind) {
	for _, one := range compared(text) {
		b.add(entry, one, kind)
	}
}

func (b *Builder) add(entry int, text string, kind Kind) {
	x := b.index
	n := Parse(text, kind)
	if n.Empty() {
		return
	}
	id := uint32(len(x.names)) //nolint:gosec // G115: a list of four billion names does not fit in memory
	x.names = append(x.names, indexed{text, entry, kind})
	for term := range n.eachTerm {
		t := b.term(term)
		if p := x.postings[t]; len(p) == 0 || p[len(p)-1] != id {
			x.postings[t] = append(p, id)
		}
	}
}

// term returns the number of a term, and indexes a new one.
func (b *Builder) term(p part) uint32 {
	x := b.index
	if t, known := x.terms[p.plain]; known {
		return t
	}
	t := uint32(len(x.texts)) //nolint:gosec // G115: as above
	x.terms[p.plain] = t
	x.texts = append(x.texts, p.plain)
	x.postings = append(x.postings, nil)
	if p.exact {
		return t
	}
	x.keys[p.key] = append(x.keys[p.key], t)
	x.bones[p.bones] = append(x.bones[p.bones], t)
	for _, g := range gramsOf(p.plain) {
		x.grams[g] = append(x.grams[g], t)
	}
	return t
}

// Build returns the index. The builder must not be used after it.
func (b *Builder) Build() *Index {
	x := b.index
	b.index = nil
	x.scratch.New = func() any {
		return &scratch{names: make([]float32, len(x.names)), part: make([]uint32, len(x.names)), terms: make([]uint8, len(x.texts))}
	}
	return x
}

// Len returns the number of names.
func (x *Index) Len() int { return len(x.names) }

// Weigh returns the weight of a word: 1 for one that no name has, and half of it for one that all have.
func (x *Index) Weigh(text string) float64 {
	t, known := x.terms[text]
	if !known {
		return 1
	}
	return 1 - math.Log1p(float64(len(x.postings[t])))/math.Log(float64(len(x.names)+2))/2
}

// eachTerm yields the words by which a name is found, in all readings: its parts, each two that stand side by side as one, and each with the
// particles before it. Words that mean little count only in a name without others.
func (n Name) eachTerm(yield func(part) bool) {
	distinct := hasWord(n.parts)
	for k := range readingsOf(n.parts) {
		for i := range n.parts {
			if k > 0 && k > len(n.parts[i].others) && (i+1 == len(n.parts) || k > len(n.parts[i+1].others)) {
				continue // as in the first reading
			}
			p := n.parts[i].as(k)
			if distinct && p.class != word && p.class != number {
				continue
			}
			if !yield(keyed(p.plain, p)) || p.text != p.plain && !yield(keyed(p.text, p)) {
				return
			}
			if i+1 < len(n.parts) && n.parts[i+1].class != form && !yield(keyed(p.plain+n.parts[i+1].as(k).plain, p)) {
				return
			}
			if with := n.withParticles(i, k); with != "" && !yield(keyed(with, p)) {
				return
			}
		}
	}
}

// withParticles returns a part with the particles before it as one word, such as "vanderbilt"; empty if there are none.
func (n Name) withParticles(i, k int) string {
	const most = 3
	from := i
	for from > 0 && i-from < most && (n.parts[from-1].class == particle || n.parts[from-1].class == common && len(n.parts[from-1].plain) < 4) {
		from--
	}
	if from == i {
		return ""
	}
	text := ""
	for _, p := range n.parts[from : i+1] {
		text += p.as(k).plain
	}
	return text
}

// mostSpelled is how many short parts that stand side by side may be the letters of a word.
const mostSpelled = 12

// eachSpelled yields the words that runs of short parts may be, as in "J O H N". They are looked up as they are.
func (n Name) eachSpelled(yield func(part) bool) {
	for i := range n.parts {
		text := ""
		for j := i; j < min(len(n.parts), i+mostSpelled) && short(&n.parts[j]); j++ {
			text += n.parts[j].plain
			if j > i+1 && !yield(part{plain: text, weight: 1, class: word}) {
				return
			}
		}
	}
}

func short(p *part) bool { return len(p.plain) < 4 && p.class != form && p.class != number }

func keyed(text string, p *part) part {
	t := part{plain: text, abjad: p.abjad, strict: p.strict, exact: p.exact, weight: p.weight, class: p.class}
	t.key, t.bones = keysOf(text, p.exact)
	return t
}

// Hit is an entry that a search found.
type Hit struct {
	Entry   int
	Name    string // the name of the entry that is most alike
	Score   float64
	Matches []Match
}

// mostCompared bounds how many names of an index are compared with one query.
const mostCompared = 200

// Search returns the entries with a name that scores at least the threshold, the best first, each once. A text of an unknown kind is compared
// as a person and as an organisation. accepts may exclude entries before they are compared; nil takes all.
func (x *Index) Search(text string, kind Kind, threshold float64, accepts func(entry int) bool) []Hit {
	best := map[int]Hit{}
	for _, one := range compared(text) {
		queries := queriesOf(one, kind)
		for _, id := range x.retrieve(queries, accepts) {
			name := x.names[id]
			for _, query := range queries {
				if len(queries) > 1 && name.kind != Unknown && name.kind != query.kind {
					continue
				}
				score, matches := Compare(query, Parse(name.text, cmp.Or(name.kind, query.kind)), x.Weigh)
				if score >= threshold && score > best[name.entry].Score {
					best[name.entry] = Hit{name.entry, name.text, score, matches}
				}
			}
		}
	}
	hits := make([]Hit, 0, len(best))
	for _, hit := range best {
		hits = append(hits, hit)
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Entry, b.Entry)) })
	return hits
}

// queriesOf reads a text as its kind, or as each kind.
func queriesOf(text string, kind Kind) []Name {
	if kind == Unknown {
		return []Name{Parse(text, Person), Parse(text, Organisation)}
	}
	return []Name{Parse(text, kind)}
}

// scratch is the memory of one search.
type scratch struct {
	names   []float32 // what matches of each name
	part    []uint32  // the part that was counted last, by name
	terms   []uint8   // shared pairs of letters, by term
	touched []uint32
	counted []uint32
}

// retrieve returns the names that share the most weight with queries of one text.
func (x *Index) retrieve(queries []Name, accepts func(entry int) bool) []uint32 {
	s, _ := x.scratch.Get().(*scratch)
	defer func() {
		for _, id := range s.touched {
			s.names[id], s.part[id] = 0, 0
		}
		s.touched = s.touched[:0]
		x.scratch.Put(s)
	}()
	n := uint32(0)
	count := func(t uint32, weight float32) {
		for _, id := range x.postings[t] {
			if s.part[id] == n || accepts != nil && !accepts(x.names[id].entry) {
				continue
			}
			if s.part[id] == 0 {
				s.touched = append(s.touched, id)
			}
			s.part[id] = n
			s.names[id] += weight
		}
	}
	seen := map[string]bool{}
	for _, query := range queries {
		for p := range query.eachTerm {
			if seen[p.plain] {
				continue
			}
			seen[p.plain] = true
			n++
			for t, likeness := range x.similar(p, s) {
				count(t, float32(likeness*p.weight*x.Weigh(x.texts[t])))
			}
		}
		for p := range query.eachSpelled {
			if t, known := x.terms[p.plain]; known && !seen[p.plain] {
				seen[p.plain] = true
				n++
				count(t, float32(x.Weigh(p.plain)))
			}
		}
	}
	return s.best()
}

// best returns the names with the most weight.
func (s *scratch) best() []uint32 {
	all := slices.Clone(s.touched)
	slices.SortFunc(all, func(a, b uint32) int { return cmp.Or(cmp.Compare(s.names[b], s.names[a]), cmp.Compare(a, b)) })
	return all[:min(len(all), mostCompared)]
}

// similar returns the terms that may match a word, with how alike they are.
func (x *Index) similar(p part, s *scratch) map[uint32]float64 {
	found := map[uint32]float64{}
	add := func(t uint32, likeness float64) { found[t] = max(found[t], likeness) }
	if t, known := x.terms[p.plain]; known {
		add(t, 1)
	}
	for _, full := range words().nick[p.plain] {
		for _, other := range words().nick[full] {
			if t, known := x.terms[other]; known {
				add(t, 0.95)
			}
		}
		if t, known := x.terms[full]; known {
			add(t, 0.95)
		}
	}
	if len(p.key) > 2 {
		for _, t := range x.keys[p.key] {
			add(t, 0.9)
		}
	}
	if len(p.bones) > 1 {
		for _, t := range x.bones[p.bones] {
			if p.abjad || x.texts[t] == p.bones {
				add(t, 0.85)
			}
		}
	}
	if !p.exact && !p.strict {
		x.spelledLike(p.plain, s, add)
	}
	return found
}

// spelledLike reports the terms that differ in a few letters.
func (x *Index) spelledLike(text string, s *scratch, add func(t uint32, likeness float64)) {
	limit := edits(len(text))
	if limit == 0 {
		return
	}
	grams := gramsOf(text)
	need := uint8(max(1, len(grams)-2*limit-1)) //nolint:gosec // G115: a word has at most 255 counted pairs
	for _, g := range grams {
		for g.length = max(1, len(text)-limit); g.length <= len(text)+limit; g.length++ {
			for _, t := range x.grams[g] {
				if s.terms[t] == 0 {
					s.counted = append(s.counted, t)
				}
				s.terms[t]++
			}
		}
	}
	for _, t := range s.counted {
		if s.terms[t] >= need {
			if d := distance(text, x.texts[t], limit); d <= limit {
				add(t, 1-float64(d)/float64(max(len(text), len(x.texts[t]))))
			}
		}
		s.terms[t] = 0
	}
	s.counted = s.counted[:0]
}

// gram is a pair of letters of a word of a length.
type gram struct {
	letters [2]byte
	length  int
}

// gramsOf returns the distinct pairs of letters of a word, with its beginning and end.
func gramsOf(text string) []gram {
	const most = 60 // of a word; names have none of this length
	var all []gram
	before := byte('^')
	for i := range min(len(text), most) + 1 {
		letter := byte('$')
		if i < len(text) {
			letter = text[i]
		}
		if g := (gram{[2]byte{before, letter}, len(text)}); !slices.Contains(all, g) {
			all = append(all, g)
		}
		before = letter
	}
	return all
}
