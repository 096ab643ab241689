package access

import "slices"

// Staff reports whether a principal works for the bank: it is the role Administrator, or it may read all records of some
// type. A user is staff when they or one of their roles are.
func (p *Policy) Staff(principal string) bool {
	return principal == Administrator || slices.ContainsFunc(p.types[principal], readsAll)
}

func readsAll(held Permission) bool { return held&ReadAll != 0 }

// StaffPrincipals returns the ids of all roles and users for which [Policy.Staff] is true, in their order.
func (p *Policy) StaffPrincipals() []string {
	ids := []string{Administrator}
	for id, held := range p.types {
		if id != Administrator && slices.ContainsFunc(held, readsAll) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Staff reports whether the caller works for the bank: see [Policy.Staff].
func (c *Caller) Staff() bool {
	if c.policy == nil || c.UserID == "" {
		return false
	}
	return slices.ContainsFunc(c.Roles, c.policy.Staff) || c.policy.Staff(c.UserID)
}
