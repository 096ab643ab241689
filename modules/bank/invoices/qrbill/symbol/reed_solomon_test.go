package symbol

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// encodeBlock appends check symbols by polynomial division.
func encodeBlock(data []byte, checks int) []byte {
	generator := []byte{1}
	for i := range checks {
		generator = field.product(generator, []byte{1, field.exp[i]}) // highest power first
	}
	rest := append(append([]byte(nil), data...), make([]byte, checks)...)
	for i := range data {
		if factor := rest[i]; factor != 0 {
			for j, g := range generator {
				rest[i+j] ^= field.mul(g, factor)
			}
		}
	}
	return append(append([]byte(nil), data...), rest[len(data):]...)
}

func TestCorrect_CorrectsUpToTheLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		checks := 10 + random.IntN(20)
		data := make([]byte, 5+random.IntN(100))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		want := encodeBlock(data, checks)
		erased := random.IntN(checks + 1)
		wrong := random.IntN((checks-erased)/2 + 1)
		block := append([]byte(nil), want...)
		places := random.Perm(len(block))
		if erased+wrong > len(places) {
			continue
		}
		for _, p := range places[:erased+wrong] {
			block[p] ^= byte(1 + random.IntN(255))
		}
		errors, ok := field.correct(block, checks, places[:erased])
		if !ok || !bytes.Equal(block, want) {
			t.Fatalf("round %d: %d checks, %d erased, %d wrong: not repaired", round, checks, erased, wrong)
		}
		if wrong+erased > 0 && errors > wrong {
			t.Fatalf("round %d: reports %d errors, made %d", round, errors, wrong)
		}
	}
}

func TestCorrect_LeavesUncorrectableBlocksUnchanged(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		block := make([]byte, 60)
		for i := range block {
			block[i] = byte(random.Uint32())
		}
		before := append([]byte(nil), block...)
		if _, ok := field.correct(block, 26, nil); ok {
			t.Fatal("random bytes were corrected")
		}
		if !bytes.Equal(block, before) {
			t.Fatal("an uncorrectable block was changed")
		}
	}
}
