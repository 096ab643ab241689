package server

import "testing"

func TestGrowth_FollowsTheBytesThatArrive(t *testing.T) {
	const limit = 30 << 20
	for _, declared := range []int{100_000, 1 << 20, 28 << 20, limit, -1} {
		taken, room := firstBody, firstBody
		for room <= max(declared, 0) || declared < 0 && room <= limit {
			more := growth(room, declared, limit)
			if more < 1 || room+more > limit+1 || room+more > 4*room+4 {
				t.Fatalf("declared %d: %d bytes more for %d that are there", declared, more, room)
			}
			room += more
			taken += room
		}
		if declared > 0 && taken > 2*declared+firstBody {
			t.Errorf("declared %d: %d bytes were allocated in total", declared, taken)
		}
	}
}
