// The store publishes one view of its tables:
//
//   - audit_trail: the entries of the audit trail, with all columns. Only the store writes entries.
package store
