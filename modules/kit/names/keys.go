package names

import (
	"slices"
	"strings"
)

// maxKeyParts bounds the parts of a name that have keys: each two of them have two.
const maxKeyParts = 6

// Key returns the consonants of all parts in their order in the alphabet: the same for most spellings of one name. It is empty for a name
// without parts.
func (n Name) Key() string {
	var all []string
	for _, p := range n.keyParts() {
		all = append(all, skeleton(p.plain))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Keys returns texts by which a database finds names that are like this one ([Name.SearchKeys]): the consonants of each part with the
// first sound of each other part, and [Name.Key]. Parts that mean little have none, unless there are no others.
func (n Name) Keys() []string {
	parts := n.keyParts()
	if len(parts) == 0 {
		return nil
	}
	keys := []string{n.Key()}
	for i, p := range parts {
		for j, other := range parts {
			if i != j {
				keys = append(keys, pairKey(p.plain, other.plain))
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// SearchKeys returns the keys of which a stored name that is like this one has at least one, also where one part is a nickname, an
// initial, or has other letters. Names of which every part differs in its consonants are not found.
func (n Name) SearchKeys() []string {
	keys := n.Keys()
	parts := n.keyParts()
	for i, p := range parts {
		for j, other := range parts {
			if i == j {
				continue
			}
			for _, nick := range nicks(other.plain) {
				keys = append(keys, pairKey(p.plain, nick), pairKey(nick, p.plain))
			}
		}
		if i+1 < len(parts) { // written as one word there
			joined := p.plain + parts[i+1].plain
			keys = append(keys, skeleton(joined))
			for j, other := range parts {
				if j < i || j > i+1 {
					keys = append(keys, pairKey(joined, other.plain), pairKey(other.plain, joined))
				}
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (n Name) keyParts() []part {
	var parts []part
	for _, p := range n.parts {
		if isWord(p) || p.class == number {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		parts = n.parts
	}
	return parts[:min(len(parts), maxKeyParts)]
}

// maxNicks bounds the short and long forms of a part that are searched.
const maxNicks = 12

// nicks returns the names that a name is short for, or that are short for it.
func nicks(plain string) []string {
	var all []string
	for _, full := range words().nick[plain] {
		all = append(all, full)
		all = append(all, words().nick[full]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxNicks)]
}

func pairKey(plain, other string) string {
	initial := sounds(other)
	if initial == "" {
		initial = other
	}
	return skeleton(plain) + "/" + initial[:1]
}

// skeleton returns the consonants of a part, or the part if it has none.
func skeleton(plain string) string {
	if bones := consonants(plain); bones != "" {
		return bones
	}
	return plain
}
