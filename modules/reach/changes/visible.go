package changes

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"kontor/modules/kit/change"
	"kontor/server/access"
	"kontor/server/apierr"
)

// visible returns the entries whose records the caller of the context may read now. It names the records of parts. It needs a few
// statements for each type of record, and none for a caller who may read all records of it.
func (s *Service) visible(ctx context.Context, entries []*entry) (map[*entry]bool, error) {
	caller := access.From(ctx)
	allowed := make(map[*entry]bool, len(entries))
	byType := map[*source][]*entry{}
	for _, e := range entries {
		if s.mayCall(caller, e.from.Get) {
			byType[e.from] = append(byType[e.from], e)
		}
	}
	for from, of := range byType {
		known, err := s.nameRecords(ctx, from, of)
		if err != nil {
			return nil, err
		}
		if err := s.addReadable(ctx, caller, from, known, allowed); err != nil {
			return nil, err
		}
	}
	return allowed, nil
}

// mayCall reports whether the caller has the grant on an endpoint, and their token its scope.
func (s *Service) mayCall(caller *access.Caller, key string) bool {
	return caller.MayCall(key) && caller.InScope(s.names[key])
}

// nameRecords replaces the ids of parts by those of their records, and returns the entries whose record exists.
func (s *Service) nameRecords(ctx context.Context, from *source, entries []*entry) ([]*entry, error) {
	parents := s.parents[from.RecType]
	for _, e := range entries {
		e.event.RecType = from.Of.Name
	}
	if parents == nil {
		return entries, nil
	}
	found, err := parents(ctx, s.db, ids(entries))
	if err != nil {
		return nil, fmt.Errorf("find the records of %s: %w", from.RecType, err)
	}
	known := entries[:0]
	for _, e := range entries {
		if id, ok := found[e.event.RecID]; ok {
			e.event.RecID = id
			known = append(known, e)
		}
	}
	return known, nil
}

// ids returns the ids of the records of entries, each once.
func ids(entries []*entry) []string {
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.event.RecID
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *Service) addReadable(ctx context.Context, caller *access.Caller, from *source, entries []*entry, allowed map[*entry]bool) error {
	if caller.May(from.Of, access.Read) {
		for _, e := range entries {
			allowed[e] = true
		}
		return nil
	}
	if from.ByType || len(entries) == 0 {
		return nil
	}
	readable, err := s.rights.Readable(ctx, caller, from.Of, ids(entries))
	if err != nil {
		return fmt.Errorf("check the access to %s: %w", from.Of, err)
	}
	for _, e := range entries {
		allowed[e] = readable[e.event.RecID]
	}
	return nil
}

// MayRead reports whether the caller of the context may read the record of an event now.
func (s *Service) MayRead(ctx context.Context, e change.Event) (bool, error) {
	for i := range sources {
		from := &sources[i]
		if from.Why != "" || from.Of.Name != e.RecType || !from.has(e.Type) {
			continue
		}
		one := &entry{event: e, from: from}
		if !s.mayCall(access.From(ctx), from.Get) {
			return false, nil
		}
		allowed := map[*entry]bool{}
		err := s.addReadable(ctx, access.From(ctx), from, []*entry{one}, allowed)
		return allowed[one], err
	}
	return false, nil
}

// has reports whether entries of the source become events of a type.
func (f *source) has(eventType string) bool {
	verb := eventType[min(len(f.Of.Name)+1, len(eventType)):]
	return verb == f.Part || slices.Contains(f.Verbs, verb)
}

// addRecords adds the records of events, each read once with the rights of the caller of the context.
func (s *Service) addRecords(ctx context.Context, events []change.Event) error {
	read := map[string]any{}
	for i := range events {
		e := &events[i]
		key := e.RecType + "/" + e.RecID
		if _, known := read[key]; !known {
			record, err := s.Record(ctx, *e)
			if err != nil {
				return err
			}
			read[key] = record
		}
		e.Record = read[key]
	}
	return nil
}

// Record returns the record of an event as the caller of the context would get it from its endpoint. It returns nil
// if the caller may not read it, if it no longer exists, or if its type has no endpoint for one record.
func (s *Service) Record(ctx context.Context, e change.Event) (any, error) {
	read, known := s.readers[e.RecType]
	if !known || !s.mayCall(access.From(ctx), sourceOf[e.RecType].Get) {
		return nil, nil //nolint:nilnil // no record
	}
	record, err := read(ctx, e.RecID)
	if err == nil {
		return record, nil
	}
	if status := apierr.Of(err).Status; status == http.StatusNotFound || status == http.StatusForbidden {
		return nil, nil //nolint:nilnil // no record
	}
	return nil, fmt.Errorf("read the record of an event: %w", err)
}
