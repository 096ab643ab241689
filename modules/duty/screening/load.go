package screening

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"

	"kontor/modules/duty/screening/lists"
	"kontor/modules/kit/names"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/upload"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	maxName  = 100 // characters in the name of a list
	maxLists = 50
	// batch is how many entries one transaction writes, so that other writes do not wait long.
	batch = 500
	// writeTime is how long one transaction may take.
	writeTime = 20 * time.Second
)

// File is a list before it is loaded.
type File struct {
	Name   string // of the list
	Size   int64
	SHA256 string
	Read   func(add func(lists.Entry) error) (lists.Info, error)
}

// content is an entry as it is stored.
type content struct {
	SourceID  string        `json:"id"`
	Kind      names.Kind    `json:"kind,omitzero"`
	Names     []string      `json:"names"`
	Programs  []string      `json:"programs,omitzero"`
	Births    []names.Birth `json:"births,omitzero"`
	Countries []string      `json:"countries,omitzero"` // ISO 3166-1 alpha-3
}

// load is a list while it is being loaded.
type load struct {
	*Service
	list    List
	former  int64 // the load that is in force; 0: none
	number  int64
	pending []pending
	seen    map[[16]byte]int32 // how often an id has occurred
}

// pending is an entry that waits to be compared with those in force.
type pending struct{ key, content string }

// Load loads a list, and replaces one of the same name in one step. It returns apierr.InvalidInput with what is wrong with the file,
// apierr.ScreeningTooMany, and apierr.ScreeningReplaced if another load of the list has begun meanwhile. After any error the former
// list is in force.
func (s *Service) Load(ctx context.Context, f File) (List, error) {
	l := &load{Service: s, seen: map[[16]byte]int32{}}
	if err := l.begin(ctx, f.Name); err != nil {
		return List{}, err
	}
	info, err := f.Read(func(e lists.Entry) error { return l.add(ctx, e) })
	if err == nil {
		err = l.flush(ctx)
	}
	if err == nil {
		err = l.remove(ctx)
	}
	if err == nil {
		l.list.Name, l.list.Format, l.list.Version, l.list.Entries = f.Name, info.Format, clip(clean(info.Version), maxName), int64(info.Entries)
		l.list.Size, l.list.SHA256 = f.Size, f.SHA256
		err = l.complete(ctx)
	}
	if err != nil {
		l.abandon()
		return List{}, problem(err)
	}
	s.tidy(l.list.ID)
	s.await(ctx)
	return l.list, nil
}

// problem returns what is wrong with a file as an error of the API.
func problem(err error) error {
	invalid := func(key string, args ...apierr.Args) error {
		var v apierr.Fields
		v.Add(upload.FileMember, key, args...)
		return &apierr.Error{Kind: apierr.InvalidInput, Fields: &v, Cause: err} // the cause is for the log of a folder
	}
	for reason, key := range map[error]string{
		lists.ErrUnknownFormat: "screening.unknown_format", lists.ErrDelta: "screening.delta", lists.ErrTooLarge: "screening.too_large",
		lists.ErrEmpty: "screening.no_entries",
	} {
		if errors.Is(err, reason) {
			return invalid(key)
		}
	}
	if errors.Is(err, lists.ErrMalformed) {
		return invalid("screening.malformed", apierr.Args{"Cause": clip(clean(strings.TrimPrefix(err.Error(), lists.ErrMalformed.Error()+": ")), 200)})
	}
	return err
}

func (s *Service) inTx(ctx context.Context, fn func(tx *store.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return s.db.InTx(limited, fn)
}

const (
	selectLoad = `SELECT list_id, load FROM screening_loads WHERE name_key = $1`
	insertLoad = `INSERT INTO screening_loads (list_id, name_key, load) VALUES ($1, $2, 1)`
	claimLoad  = `UPDATE screening_loads SET load = load + 1 WHERE list_id = $1`
	// confirmLoad also makes two loads of a list wait for each other.
	confirmLoad = `UPDATE screening_loads SET batches = batches + 1 WHERE list_id = $1 AND load = $2`
)

// begin claims the list, so that loads which have begun before fail, and removes what they have left.
func (l *load) begin(ctx context.Context, name string) error {
	key := types.Fold(name)
	err := l.inTx(ctx, func(tx *store.Tx) error {
		current, err := scan(tx.QueryRow(ctx, selectByName, key))
		switch {
		case errors.Is(err, store.ErrNotFound):
			var count int64
			if err := tx.QueryRow(ctx, countLists).Scan(&count); err != nil {
				return err
			}
			if count >= maxLists {
				return apierr.ScreeningTooMany.With(apierr.Args{"Max": maxLists})
			}
		case err != nil:
			return err
		}
		l.list, l.former = current, current.load
		l.list.Added, l.list.Changed, l.list.Removed = 0, 0, 0
		err = tx.QueryRow(ctx, selectLoad, key).Scan(&l.list.ID, &l.number)
		if errors.Is(err, store.ErrNotFound) {
			l.list.ID, l.number = store.NewID(), 1
			return tx.Run(ctx, insertLoad, l.list.ID, key)
		}
		if err != nil {
			return err
		}
		l.number++
		return tx.Run(ctx, claimLoad, l.list.ID)
	})
	if err != nil {
		return err
	}
	return l.sweep(ctx, l.list.ID)
}

// write runs a transaction of the load. It returns apierr.ScreeningReplaced if another one has begun, or the list was dropped.
func (l *load) write(ctx context.Context, fn func(tx *store.Tx) error) error {
	return l.inTx(ctx, func(tx *store.Tx) error {
		mine, err := tx.Exec(ctx, confirmLoad, l.list.ID, l.number)
		if err == nil && mine == 0 {
			err = apierr.ScreeningReplaced
		}
		if err != nil {
			return err
		}
		return fn(tx)
	})
}

// add takes an entry of the file.
func (l *load) add(ctx context.Context, e lists.Entry) error {
	e.SourceID = cleanID(e.SourceID)
	text, err := json.Marshal(content{e.SourceID, e.Kind, e.Names, e.Programs, e.Births, alpha3(e.Countries...)}, json.Deterministic(true))
	if err != nil {
		return err
	}
	hash := hashOf(e.SourceID)
	l.seen[hash]++
	l.pending = append(l.pending, pending{numbered(e.SourceID, l.seen[hash]), string(text)})
	if len(l.pending) < batch {
		return nil
	}
	return l.flush(ctx)
}

// alpha3 returns the codes of countries in the form of the API. Others are left out: a former country on a list would contradict every
// customer, and a nationality such as XXA (stateless) every list.
func alpha3(codes ...string) []string {
	var all []string
	for _, code := range codes {
		if country, err := types.CountryOf(code); err == nil {
			all = append(all, country.String())
		}
	}
	return all
}

// hashOf returns a short form of an id, of which two million must fit in memory.
func hashOf(id string) [16]byte {
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}

// cleanID returns an id of a file without characters that databases reject, and a long one as its digest: it is a key.
func cleanID(id string) string {
	const longest = 200
	id = clean(id)
	if len(id) > longest {
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:])
	}
	return id
}

// clean removes control characters and what is no text.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}

// clip returns at most n characters of a text.
func clip(text string, n int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), n)])
}

// numbered returns the key of an entry: an id that occurs again has a number.
func numbered(id string, n int32) string {
	if n > 1 {
		return id + "\n" + strconv.Itoa(int(n))
	}
	return id
}

const (
	selectKeys = `
		SELECT entry_key, id, content FROM screening_entries
		WHERE list_id = $1 AND from_load < $2 AND to_load IS NULL AND entry_key IN (%s)`
	insertEntry = `INSERT INTO screening_entries (id, list_id, entry_key, content, from_load) VALUES ($1, $2, $3, $4, $5)`
	endEntry    = `UPDATE screening_entries SET to_load = $3 WHERE list_id = $1 AND entry_key = $2 AND to_load IS NULL AND from_load < $3`
)

// flush stores the entries that are new or differ.
func (l *load) flush(ctx context.Context) error {
	if len(l.pending) == 0 {
		return nil
	}
	current, err := l.current(ctx)
	if err != nil {
		return err
	}
	err = l.write(ctx, func(tx *store.Tx) error {
		for _, p := range l.pending {
			was, known := current[p.key]
			if known && was.content == p.content {
				continue
			}
			id := was.key
			if !known {
				id = store.NewID()
			} else if _, err := tx.Exec(ctx, endEntry, l.list.ID, p.key, l.number); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, insertEntry, id, l.list.ID, p.key, p.content, l.number); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range l.pending {
		if was, known := current[p.key]; !known {
			l.list.Added++
		} else if was.content != p.content {
			l.list.Changed++
		}
	}
	l.pending = l.pending[:0]
	return nil
}

// current returns the entries in force of the pending ones: their id and content, by key.
func (l *load) current(ctx context.Context) (map[string]pending, error) {
	keys := make([]string, len(l.pending))
	for i, p := range l.pending {
		keys[i] = p.key
	}
	current := map[string]pending{}
	err := store.Each(ctx, l.db, func(row store.Scanner) error {
		var key string
		var p pending
		err := row.Scan(&key, &p.key, &p.content)
		current[key] = p
		return err
	}, fmt.Sprintf(selectKeys, store.In(3, len(keys))), store.AppendIn([]any{l.list.ID, l.number}, keys)...)
	return current, err
}

const selectInLoad = `
	SELECT entry_key FROM screening_entries
	WHERE list_id = $1 AND entry_key > $2 AND from_load < $3 AND to_load IS NULL ORDER BY entry_key LIMIT $4`

// remove ends the entries that the file lacks.
func (l *load) remove(ctx context.Context) error {
	if l.former == 0 {
		return nil
	}
	for last, more := "", true; more; {
		keys, err := store.All(ctx, l.db, store.Text, selectInLoad, l.list.ID, last, l.number, batch)
		if err != nil {
			return err
		}
		if more = len(keys) == batch; more {
			last = keys[len(keys)-1]
		}
		if err := l.endMissing(ctx, keys); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) endMissing(ctx context.Context, keys []string) error {
	missing := keys[:0]
	for _, key := range keys {
		id, number, _ := strings.Cut(key, "\n")
		n := 1
		if number != "" {
			n, _ = strconv.Atoi(number) // it was written by numbered
		}
		if int(l.seen[hashOf(id)]) < n {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	l.list.Removed += int64(len(missing))
	return l.write(ctx, func(tx *store.Tx) error {
		for _, key := range missing {
			if _, err := tx.Exec(ctx, endEntry, l.list.ID, key, l.number); err != nil {
				return err
			}
		}
		return nil
	})
}

// complete puts the load in force.
func (l *load) complete(ctx context.Context) error {
	return l.write(ctx, func(tx *store.Tx) error {
		before, err := readList(ctx, tx, l.list.ID)
		var was any = before
		if errors.Is(err, store.ErrNotFound) {
			was, err = nil, nil
		}
		if err != nil {
			return err
		}
		l.list.load, l.list.LoadedAt, l.list.LoadedBy = l.number, tx.Now(), records.Actor(ctx)
		if was == nil {
			l.list.CreatedAt, l.list.CreatedBy = l.list.LoadedAt, l.list.LoadedBy
		}
		a := l.list
		_, err = tx.Exec(ctx, upsertList, a.ID, a.Name, types.Fold(a.Name), string(a.Format), a.Version, a.Entries, a.Size, a.SHA256, a.Added, a.Changed, a.Removed,
			a.CreatedAt, a.CreatedBy, a.LoadedAt, a.LoadedBy, a.load)
		if err != nil {
			return err
		}
		tx.AnnounceSoon(l.changed, "")
		tx.Respond(a)
		return listProof.Audit(ctx, tx, "screening.load", a.ID, was)
	})
}

const abandonLoad = `UPDATE screening_loads SET load = load + 1 WHERE list_id = $1 AND load = $2`

// abandon ends a load that has failed. Its entries are removed now, or by the next load of the list. It does not depend on the request,
// which may have ended.
func (l *load) abandon() {
	err := l.inTx(l.life, func(tx *store.Tx) error { return tx.Run(l.life, abandonLoad, l.list.ID, l.number) })
	if err != nil {
		l.Log.Warn("the rest of a list remains until it is loaded again", "list", l.list.ID, "cause", err)
		return
	}
	l.tidy(l.list.ID)
}

// Drop removes a list. It returns apierr.ScreeningListNotFound.
func (s *Service) Drop(ctx context.Context, id string) error {
	err := s.inTx(ctx, func(tx *store.Tx) error {
		tx.AnnounceSoon(s.changed, "")
		err := listProof.Change(ctx, tx, "screening.drop", id, func() error { return tx.RunEach(ctx, id, deleteList, deleteLoad) })
		return records.OrMissing(err, apierr.ScreeningListNotFound)
	})
	if err == nil {
		s.tidy(id)
		s.await(ctx)
	}
	return err
}
