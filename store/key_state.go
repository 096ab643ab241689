package store

import "context"

// KeyState describes the keys of a database.
type KeyState struct {
	Generations []KeyGeneration // the oldest first
	Resealing   bool            // a rotation is not complete
	InFile      bool            // the master key is in the data directory
	Remaining   []Resealed      // values of former generations, by column
}

// KeyGeneration describes a generation of keys.
type KeyGeneration struct {
	Number    int
	CreatedAt Time // zero for the first one
	Opens     bool // values that were sealed with it can still be opened
}

// KeyState counts the values that are not sealed with the newest key.
func (db *DB) KeyState(ctx context.Context) (KeyState, error) {
	state := KeyState{Generations: []KeyGeneration{{Opens: true}}, InFile: db.givenKey == nil}
	ring := db.keys.Keyring()
	if ring == nil {
		return state, nil
	}
	state.Resealing, state.Generations = ring.Resealing, nil
	for _, g := range ring.Generations {
		one := KeyGeneration{Number: g.Number, Opens: g.Seals()}
		if !g.CreatedAt.IsZero() {
			one.CreatedAt = TimeOf(g.CreatedAt)
		}
		state.Generations = append(state.Generations, one)
	}
	for _, c := range db.sealed.all() {
		found := Resealed{Table: c.Table, Column: c.Column}
		for after := ""; ; {
			values, err := db.nextSealed(ctx, c, after)
			if err != nil {
				return state, err
			}
			if len(values) == 0 {
				break
			}
			found.Values += int64(len(values))
			after = values[len(values)-1].After
		}
		if found.Values > 0 {
			state.Remaining = append(state.Remaining, found)
		}
	}
	return state, nil
}
