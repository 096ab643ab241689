package bus

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"kontor/store/engine"
)

const (
	// maxPayload is the length of a notification in bytes. PostgreSQL accepts less than 8,000.
	maxPayload = 7800
	// maxPayloads bounds the notifications of a group. Longer lists of keys are shortened.
	maxPayloads = 8
	// maxPairs bounds the bytes of the pairs in one notification: maxPayload without the rest of the message.
	maxPairs = maxPayload - 150
	// format is the number of this encoding.
	format = 1
	// otherFormat begins a message of another version of the program. Its receivers cannot know what has changed.
	otherFormat = `{"v":`
)

// message is a notification of a group.
type message struct {
	Format int         `json:"v"`
	Node   string      `json:"n"`           // that has committed the group
	Tag    string      `json:"t"`           // of the group, at random
	Strict bool        `json:"s,omitempty"` // the group waits for acknowledgements of the tag
	Last   bool        `json:"l,omitempty"` // of the notifications of the group
	Pairs  [][2]string `json:"p,omitempty"` // topics and keys
}

// pairSize returns how many bytes a pair takes in a message at most.
func pairSize(p [2]string) int { return len(`["",""],`) + textSize(p[0]) + textSize(p[1]) }

// textSize returns how many bytes the content of a JSON string takes at most.
func textSize(s string) int {
	size := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f:
			size += len(`\u0000`)
		case c == 0xe2: // the first of the three bytes of U+2028 and U+2029, which are escaped
			size += len(`\u2028`) - 2
		default:
			size++
		}
	}
	return size
}

// pairs returns the topics and keys of announcements in their order. An idempotent announcement is listed once.
func pairs(list []engine.Announcement) [][2]string {
	found := make([][2]string, 0, len(list))
	seen := make(map[[2]string]bool)
	for _, a := range list {
		p := [2]string{a.Topic.Name(), a.Key}
		if !utf8.ValidString(p[1]) || pairSize(p) > maxPairs {
			p[1] = ""
		}
		if a.Delivery != engine.Ordered {
			if seen[p] {
				continue
			}
			seen[p] = true
		}
		found = append(found, p)
	}
	return found
}

// split distributes pairs to at most maxPayloads lists that fit into a notification each. When there are too many, it
// replaces the keys of the largest topics by an empty one.
func split(all [][2]string) [][][2]string {
	for {
		var lists [][][2]string
		size := maxPairs + 1
		for _, p := range all {
			n := pairSize(p)
			if size+n > maxPairs {
				lists, size = append(lists, nil), 0
			}
			lists[len(lists)-1] = append(lists[len(lists)-1], p)
			size += n
		}
		if len(lists) <= maxPayloads {
			return lists
		}
		all = shorten(all)
	}
}

// shorten replaces the keys of the topic that takes the most bytes by an empty one, where the topic appears first.
func shorten(all [][2]string) [][2]string {
	sizes := make(map[string]int)
	for _, p := range all {
		sizes[p[0]] += pairSize(p)
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(sizes)), func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	var kept [][2]string
	found := false
	for _, p := range all {
		switch {
		case p[0] != largest:
			kept = append(kept, p)
		case !found:
			found = true
			kept = append(kept, [2]string{largest, ""})
		}
	}
	return kept
}

// encode returns the payloads of a group.
func encode(node, tag string, strict bool, list []engine.Announcement) []string {
	lists := split(pairs(list))
	payloads := make([]string, len(lists))
	for i, part := range lists {
		encoded, _ := json.Marshal(message{ // strings and booleans cannot fail
			Format: format, Node: node, Tag: tag, Strict: strict, Last: i == len(lists)-1, Pairs: part,
		})
		payloads[i] = string(encoded)
	}
	return payloads
}

// decode returns the message in a payload. known is false for what this version of the program does not understand.
func decode(payload string) (m message, known bool) {
	if err := json.Unmarshal([]byte(payload), &m); err != nil || m.Format != format {
		return message{}, false
	}
	return m, true
}
