package access

// Subject declares whose rights an operation uses, gives away or takes away: those of a user, or of a role. A caller must hold every
// right that the subject holds, or be an administrator. Otherwise callers who may reset the sign-in of others could become any of
// them. The zero Subject is no decision.
type Subject struct {
	kind   SubjectKind
	param  string
	reason string
}

// SubjectKind is the kind of record that the path names, from which the subject is found.
type SubjectKind uint8

// The kinds.
const (
	SubjectUndecided  SubjectKind = iota
	SubjectUser                   // a user
	SubjectSelf                   // the caller: the handler refuses all others, whatever they hold
	SubjectAccount                // a service account, which is a user
	SubjectCredential             // the user who has a credential
	SubjectInvitation             // the roles that an invitation gives
	SubjectRole                   // a role
	SubjectGrant                  // the user or role that has a grant
	SubjectPersona                // the users who are, or were, a persona
	SubjectExempt                 // none
)

// The following functions return a subject by the name of the path's parameter with the id.

// UserIn returns the user with the id. Operations of users on themselves need no comparison.
func UserIn(param string) Subject { return Subject{kind: SubjectUser, param: param} }

// SelfIn returns the caller, whose id the path must have. The handler checks it, and a test of all rows does.
func SelfIn(param string) Subject { return Subject{kind: SubjectSelf, param: param} }

// AccountIn returns the user of a service account.
func AccountIn(param string) Subject { return Subject{kind: SubjectAccount, param: param} }

// CredentialIn returns the user who has a credential.
func CredentialIn(param string) Subject { return Subject{kind: SubjectCredential, param: param} }

// InvitationIn returns the roles of an invitation.
func InvitationIn(param string) Subject { return Subject{kind: SubjectInvitation, param: param} }

// RoleIn returns a role.
func RoleIn(param string) Subject { return Subject{kind: SubjectRole, param: param} }

// GrantIn returns the user or role that has a grant.
func GrantIn(param string) Subject { return Subject{kind: SubjectGrant, param: param} }

// PersonaIn returns the users who are, or were, a persona.
func PersonaIn(param string) Subject { return Subject{kind: SubjectPersona, param: param} }

// NoSubject states why an operation needs no comparison of rights.
func NoSubject(reason string) Subject { return Subject{kind: SubjectExempt, reason: reason} }

// Kind returns the kind.
func (s Subject) Kind() SubjectKind { return s.kind }

// Param returns the name of the path's parameter; empty for none.
func (s Subject) Param() string { return s.param }

// Reason returns why there is no subject.
func (s Subject) Reason() string { return s.reason }

// Lacking returns the rights that a holder has by grants on types and endpoints and that the caller does not have, in a fixed
// order: "customers:update", "GET /v1/audit". Only an administrator has the rights of an administrator.
func (c *Caller) Lacking(holder *Caller) []string {
	switch {
	case c.Administrator():
		return nil
	case holder.Administrator():
		return []string{"administrator"}
	}
	var lacking []string
	for _, t := range recordTypes {
		for _, name := range holder.Permissions(t).Names() {
			if p, _ := ParsePermission(name); !c.May(t, p) {
				lacking = append(lacking, t.Name+":"+name)
			}
		}
	}
	for _, key := range holder.endpoints() {
		if !c.MayCall(key) {
			lacking = append(lacking, key)
		}
	}
	return lacking
}
