package openapi

import (
	"path"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain contains the packages whose types need no prefix.
var plain = map[string]bool{"endpoint": true, "server": true, "auth": true, "rbac": true, "access": true, "list": true}

// published are the modules that the document calls by another name than the package: generated clients name their types
// after the schemas.
var published = map[string]string{"directory": "users", "deliveries": "notifications", "qrbill": "invoices"}

// componentName returns the name of the schema of a type: the Go name with the module as a prefix, such as
// "CustomerCreateInput" for customers.CreateInput and "CustomerPage" for list.Page[customers.Customer]. It returns an empty
// string for a type without a name.
func componentName(typ reflect.Type) string {
	name, argument, generic := strings.Cut(typ.Name(), "[")
	if name == "" {
		return ""
	}
	if generic {
		argument = strings.TrimSuffix(argument, "]")
		dot := strings.LastIndex(argument, ".")
		return moduleName(argument[:max(dot, 0)], argument[dot+1:]) + title(name)
	}
	return moduleName(typ.PkgPath(), name)
}

func moduleName(pkg, name string) string {
	name = title(name)
	module := path.Base(pkg)
	if plain[module] {
		return name
	}
	if other, ok := published[module]; ok {
		module = other
	}
	module = title(strings.TrimSuffix(module, "s"))
	if name == "File" { // The clients have a type File of their own, for uploads.
		return "StoredFile"
	}
	if strings.HasPrefix(name, module) {
		return name
	}
	return module + name
}

func title(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}
