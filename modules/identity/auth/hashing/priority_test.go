package hashing

import "testing"

func TestPriorities_OneSumAtOnceIsNormal(t *testing.T) {
	var p priorities
	if !p.begin(false) {
		t.Error("a single sum has a low priority")
	}
	if p.begin(false) {
		t.Error("a second sum beside it has normal priority")
	}
	p.end(false, 0)
	p.end(true, 0)
	if !p.begin(false) {
		t.Error("the next single sum has a low priority")
	}
}

func TestPriorities_AllSumsAreLowInAFlood(t *testing.T) {
	var p priorities
	for range 3 {
		if p.begin(true) {
			t.Error("a sum has normal priority while callers wait")
		}
		p.end(false, slowSum)
	}
}

// On a machine that other programs keep busy, the queue of a flood must move.
func TestPriorities_OneSumIsNormalInAFloodOnABusyMachine(t *testing.T) {
	var p priorities
	p.end(p.begin(true), slowSum+1)
	for range 3 {
		if !p.begin(true) {
			t.Fatal("no sum has normal priority although those of low priority are slow")
		}
		if p.begin(true) {
			t.Fatal("a second sum has normal priority")
		}
		p.end(true, slowSum+1)
		p.end(false, slowSum+1)
	}
	p.end(false, slowSum) // the machine is quiet again
	if p.begin(true) {
		t.Error("a sum has normal priority while callers wait on a quiet machine")
	}
}
