package bus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kontor/store/engine"
	"kontor/store/postgres/internal/bus"
	"kontor/store/postgres/postgrestest"
)

// Every user of a database can send notifications. They must neither harm a node nor answer a strict change too early.
func TestForged_NotificationsHarmNobody(t *testing.T) {
	address, proxy := database(t)
	c := &clock{}
	a := start(t, address, options{time: c})
	b := start(t, address, options{time: c, listen: proxy.Through(address)})
	attacker := connect(t, address)
	self := a.self().ID
	forged := []string{
		"", "x", "{", "[]", "null", "{}", `"text"`, "\x01", strings.Repeat("[", 7900), strings.Repeat("9", 7900),
		`{"v":1}`, `{"v":1,"n":"` + self + `"}`, `{"v":1,"n":"` + self + `","t":"AAAA","s":true,"l":true,"p":[["changes","forged"]]}`,
		`{"v":1,"n":"unknown","t":"AAAA","s":true,"l":true,"p":[["changes","forged"],["missing","x"],["",""]]}`,
		`{"v":1,"n":"',\"{}","t":"{,}","s":true,"l":true}`, `{"v":1,"p":[["changes"]]}`, `{"v":1,"p":[["changes","a","b"]]}`, `{"v":1,"p":{}}`,
		`{"v":99,"n":"newer"}`,
	}
	rounds := 0
	send := func() (last string) {
		for _, payload := range forged {
			execute(t, attacker, fmt.Sprintf(`SELECT pg_notify('%s', '%s')`, a.Channel(), strings.ReplaceAll(payload, "'", "''")))
			execute(t, attacker, fmt.Sprintf(`SELECT pg_notify('other channel', '%s')`, strings.ReplaceAll(payload, "'", "''")))
		}
		for i := range 2000 { // more publishers than are acknowledged at a time
			execute(t, attacker, fmt.Sprintf(`SELECT pg_notify('%s', '{"v":1,"n":"P%d","t":"T","s":true,"l":true}')`, a.Channel(), i))
		}
		rounds++
		last = fmt.Sprint("last ", rounds)
		execute(t, attacker, fmt.Sprintf(`SELECT pg_notify('%s', '{"v":1,"n":"P","t":"T","l":true,"p":[["changes","%s"]]}')`, a.Channel(), last))
		return last
	}
	send()
	before := len(b.received())
	genuine := a.strict("genuine")
	c.flow(t, "the answer", func() bool { return !isOpen(genuine) })
	if b.missed("genuine", before) {
		t.Errorf("after forged notifications: received %q", b.received()[before:])
	}
	c.flow(t, "both nodes remember", func() bool { return a.Remembers() && b.Remembers() })
	if b.missed("genuine", before) {
		t.Errorf("a node remembers without the genuine key: received %q", b.received()[before:])
	}
	if !b.has("forged") || !slices.Contains(b.received()[1:], "") {
		t.Errorf("a forged key was not received, or a message of a newer version made nobody forget: %q", b.received())
	}
	rows := execute(t, attacker, `SELECT count(*) FROM kontor_acks WHERE publisher <> '`+self+`'`)
	if got := string(rows[0].Rows[0][0]); got != "0" {
		t.Errorf("%s acknowledgements for forged publishers were stored", got)
	}
	proxy.Hold()
	received := a.strict("waits")
	last := send()
	until(t, "all forged notifications arrive", func() bool { return a.has(last) }) // while the lease of the other node cannot end
	c.beat(a)
	if !isOpen(received) {
		t.Error("forged notifications have answered a strict change")
	}
	proxy.Release()
	c.flow(t, "the answer", func() bool { return !isOpen(received) })
}

// A user who reads the id of a node cannot have its local functions called before their commit: the tag of the group is
// random.
func TestForged_NotificationOfAGroupNeedsItsTag(t *testing.T) {
	a := start(t, postgrestest.URL(t), options{})
	g := a.Prepare([]engine.Announcement{{Topic: a.topic, Key: "own", Delivery: engine.Ordered, Local: func() { t.Error("the function was called") }}})
	for _, tag := range []string{"", "0", "1", strings.Repeat("A", 26)} {
		execute(t, a.writer, fmt.Sprintf(`SELECT pg_notify('%s', '{"v":1,"n":"%s","t":"%s","l":true,"p":[["changes","%s"]]}')`, a.Channel(), a.self().ID, tag, "tag"+tag))
	}
	until(t, "the forged notifications arrive", func() bool { return a.has("tag" + strings.Repeat("A", 26)) })
	a.Undone(g)
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"v":1,"n":"a","t":"b","p":[["topic","key"]]}`, `{"v":2}`, `{`, "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		if node, pairs, known := bus.Decode(payload); !known && (node != "" || pairs != nil) {
			t.Errorf("an unknown message has content: %q %q", node, pairs)
		}
	})
}

func TestSplit_KeepsOrderAndLimits(t *testing.T) {
	var all [][2]string
	for i := range 700 {
		all = append(all, [2]string{fmt.Sprint("topic ", i%3), strings.Repeat("k", i%80)})
	}
	var joined [][2]string
	lists := bus.Split(all)
	for _, list := range lists {
		joined = append(joined, list...)
	}
	if !slices.Equal(joined, all) || len(lists) > bus.MaxPayloads {
		t.Errorf("%d pairs were split to %d lists with %d pairs", len(all), len(lists), len(joined))
	}
	for i := range 20_000 {
		all = append(all, [2]string{"many", fmt.Sprint(i)}, [2]string{"empty", ""})
	}
	lists = bus.Split(all)
	total := 0
	for _, list := range lists {
		total += len(list)
	}
	if len(lists) > bus.MaxPayloads || total >= len(all) {
		t.Errorf("%d pairs were shortened to %d in %d lists", len(all), total, len(lists))
	}
}
