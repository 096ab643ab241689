package app

import (
	"context"

	"kontor/modules/bank/customers"
	"kontor/modules/bank/imports"
	"kontor/server/access"
)

// newImports builds the imports of customers.
func newImports(m *Modules) *imports.Service {
	o := m.Settings.Imports
	return imports.New(m.DB, importedCustomers{m.Customers}, m.Users, imports.Options{
		MaxBytes: o.MaxBytes, KeepDays: o.KeepDays, Policy: m.Policy, TermsDue: m.termsDue(&m.held.imports), Texts: m.Texts, Log: m.Log,
	})
}

// importedCustomers adapts the module customers for imports.
type importedCustomers struct{ *customers.Service }

// Columns returns the columns of a file.
func (c importedCustomers) Columns() map[string]bool { return customers.ImportColumns() }

// Begin prepares the stored customers.
func (c importedCustomers) Begin(ctx context.Context) error { return c.PrepareImports(ctx) }

// Prepare checks a row.
func (c importedCustomers) Prepare(ctx context.Context, cells map[string]string) (imports.Row, error) {
	row, err := c.PrepareImport(ctx, cells)
	if err != nil {
		return nil, err
	}
	return row, nil
}

// MayImport reports whether the caller may import customers one by one as well.
func (c importedCustomers) MayImport(caller *access.Caller, updates bool) bool {
	return mayCall(caller, "POST /v1/customers/import", "customers.import") && mayCall(caller, "POST /v1/customers", "customers.create") &&
		caller.May(access.Customers, access.Create) && (!updates || mayCall(caller, "PUT /v1/customers/{id}", "customers.update"))
}

// mayCall reports whether the caller has the grant on an endpoint, within the scopes of their token.
func mayCall(caller *access.Caller, key, name string) bool {
	return caller.MayCall(key) && caller.InScope(name)
}
