package continuous

import (
	"context"
	"fmt"
	"slices"
)

// deleteOld deletes the chains whose states are all older than the time to retain. The time is the one that the database was served
// since, which the parts prove: a clock that jumps deletes nothing. The newest chain of each line stays.
func (s *Shipper) deleteOld(ctx context.Context) error {
	if s.Retain <= 0 {
		return nil
	}
	now := s.line.elapsed()
	if now < s.Retain { // nothing can be old enough, and the list of a target is expensive
		return nil
	}
	survey, err := Look(ctx, s.Target, "")
	if err != nil {
		return err
	}
	var old []part
	var oldChains []*Line
	for _, l := range survey.Lines {
		switch upTo, superseded := s.line.Supersedes[l.ID]; {
		case l.Old:
			oldChains = append(oldChains, l)
		case l.ID == s.line.id:
			all := l.chains()
			for i := 0; i+1 < len(all) && now-all[i+1].first().elapsed >= s.Retain; i++ {
				old = append(old, all[i]...)
			}
		case superseded && len(l.parts) > 0 && l.Top().Commits <= upTo && now-s.line.SupersedesSince >= s.Retain:
			newest := slices.MaxFunc(l.parts, byCommits).chain
			old = append(old, slices.DeleteFunc(slices.Clone(l.parts), func(p part) bool { return p.chain == newest })...)
		}
	}
	// Chains of an earlier version are from before this line. Only those of this bank are deleted.
	for i := 0; i+1 < len(oldChains); i++ {
		if err := oldChains[i].identify(ctx, s.Target, s.key); err != nil {
			return err
		}
		if oldChains[i].Ours {
			old = append(old, oldChains[i].parts...)
		}
	}
	for _, p := range old {
		if err := s.Target.Delete(ctx, p.name()); err != nil {
			return fmt.Errorf("delete from %s: %w", s.Target, err)
		}
	}
	return nil
}
