package web

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The modules are written one by one and sent in few files, because each request of a slow network takes a round trip. A bundle is a
// module that holds the modules it needs, each in a function of its own. They are kept by name in one object of the page, so that a
// module of two bundles runs once. A bundle is served at the address of its entry, and dynamic imports name entries only.

// mainModule is the entry that the page loads.
const mainModule = "app/main.js"

var (
	importing     = regexp.MustCompile(`(?m)^import\s*([\w$]+)?\s*,?\s*(?:\{([^}]*)\})?\s*from\s*['"]([^'"]+)['"];?`)
	exportedList  = regexp.MustCompile(`(?m)(^|[;}])export\s*\{([^}]*)\}(?:\s*from\s*['"]([^'"]+)['"])?;?`)
	exportedNamed = regexp.MustCompile(`(?m)^export (default )?((?:const|class|(?:async )?function\*?) ([\w$]+))`)
	exportedValue = regexp.MustCompile(`(?m)(^|[;}])export default `)
	dynamicImport = regexp.MustCompile("import\\(([`'])(\\.{1,2}/(?:[\\w-]+/)*)([^`']*)[`']\\)")
	awaitsAtTop   = regexp.MustCompile(`(?m)^(?:await |const [^=\n]+ = await )`)
	styleImport   = regexp.MustCompile(`(?m)^@import url\("([^"]+)"\)( layer\((\w+)\))?;\n?`)
)

// module is one module as a part of a bundle.
type module struct {
	names []string // what it exports
	uses  []string // the modules that it imports statically
	body  string   // `$m["app/x.js"] ??= (() => { … })();`
}

// bundleAll replaces each entry by its bundle, and the style sheet by one with the sheets that it imports.
func (s *snapshot) bundleAll(screens []screen) error {
	base := "/assets/" + s.hash
	main, ok := s.assets[mainModule]
	if !ok {
		return nil // a site without modules, in tests
	}
	entries := s.entries(screens)
	modules := map[string]module{}
	for name, f := range s.assets {
		if f.Kind != main.Kind || name == "app/theme.js" || name == "app/session_worker.js" {
			continue // They are scripts.
		}
		var err error
		if modules[name], err = moduleOf(name, base, string(f.Plain)); err != nil {
			return err
		}
	}
	inMain := map[string]bool{}
	first := inOrder(mainModule, modules)
	for _, name := range first {
		inMain[name] = true
	}
	bundles := map[string]file{mainModule: newFile(main.Kind, bundle(first, modules))}
	for _, entry := range entries {
		own := slices.DeleteFunc(inOrder(entry, modules), func(name string) bool { return inMain[name] })
		bundles[entry] = newFile(main.Kind, bundle(own, modules))
	}
	for name, f := range bundles {
		s.assets[name] = f
	}
	s.bundleStyles("style/main.css")
	return nil
}

// entries returns the modules that are imported dynamically: those of the screens, and those that modules name.
func (s *snapshot) entries(screens []screen) []string {
	found := []string{"app/screens/not_found.js", "app/screens/no_access.js"}
	for _, row := range screens {
		found = append(found, "app/screens/"+row.Module+".js", "app/screens/"+cmp.Or(row.Client.Module, row.Module)+".js")
	}
	for name, f := range s.assets {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, m := range dynamicImport.FindAllStringSubmatch(withoutComments(string(f.Plain)), -1) {
			if target := path.Join(path.Dir(name), m[2]+m[3]); !strings.Contains(target, "$") {
				found = append(found, target)
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return slices.DeleteFunc(found, func(name string) bool { return s.assets[name].Plain == nil })
}

// inOrder returns a module and everything it imports statically, imported ones first.
func inOrder(entry string, modules map[string]module) (names []string) {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		one, ok := modules[name]
		if !ok || seen[name] {
			return
		}
		seen[name] = true
		for _, used := range one.uses {
			visit(used)
		}
		names = append(names, name)
	}
	visit(entry)
	return names
}

// bundle joins modules; the last one is the entry, whose names the bundle exports.
func bundle(names []string, modules map[string]module) []byte {
	var out bytes.Buffer
	out.WriteString("const $m = globalThis.kontorModules ??= {};\n")
	for _, name := range names {
		out.WriteString(modules[name].body)
	}
	entry := names[len(names)-1]
	for _, name := range modules[entry].names {
		if name == "default" {
			fmt.Fprintf(&out, "export default $m[%q].default;\n", entry)
		} else {
			fmt.Fprintf(&out, "export const %s = $m[%q].%[1]s;\n", name, entry)
		}
	}
	return out.Bytes()
}

// moduleOf turns the text of a module into a part of a bundle. It fails for forms of import and export that the console does not use.
func moduleOf(name, base, text string) (module, error) {
	text = withoutComments(text)
	folder := path.Dir(name)
	text = dynamicImport.ReplaceAllStringFunc(text, func(found string) string {
		m := dynamicImport.FindStringSubmatch(found)
		return "import(" + m[1] + base + "/" + path.Join(folder, m[2]) + "/" + m[3] + m[1] + ")"
	})
	var out module
	var values []string
	use := func(from string) string {
		out.uses = append(out.uses, path.Join(folder, from))
		return fmt.Sprintf("$m[%q]", path.Join(folder, from))
	}
	export := func(as, value string) {
		out.names = append(out.names, as)
		values = append(values, as+": "+value)
	}
	text = importing.ReplaceAllStringFunc(text, func(found string) string {
		m := importing.FindStringSubmatch(found)
		from := use(m[3])
		code := ""
		if m[1] != "" {
			code = "const " + m[1] + " = " + from + ".default;"
		}
		if m[2] != "" {
			code += "const {" + strings.ReplaceAll(m[2], " as ", ": ") + "} = " + from + ";"
		}
		return code
	})
	text = exportedList.ReplaceAllStringFunc(text, func(found string) string {
		m := exportedList.FindStringSubmatch(found)
		for one := range strings.SplitSeq(m[2], ",") {
			local, as, renamed := strings.Cut(strings.TrimSpace(one), " as ")
			if !renamed {
				as = local
			}
			if m[3] != "" {
				local = use(m[3]) + "." + local
			}
			if as != "" {
				export(as, local)
			}
		}
		return m[1]
	})
	text = exportedNamed.ReplaceAllStringFunc(text, func(found string) string {
		m := exportedNamed.FindStringSubmatch(found)
		export(cmp.Or(strings.TrimSpace(m[1]), m[3]), m[3])
		return m[2]
	})
	text = exportedValue.ReplaceAllStringFunc(text, func(found string) string {
		export("default", "$default")
		return strings.TrimSuffix(found, "export default ") + "const $default = "
	})
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "export ") {
			return module{}, fmt.Errorf("%s: a bundle cannot hold %q", name, line)
		}
	}
	open, wait := "(() => {", ""
	if awaitsAtTop.MatchString(text) {
		open, wait = "(async () => {", "await "
	}
	out.body = fmt.Sprintf("$m[%q] ??= %s%s\n%s\nreturn { %s };\n})();\n", name, wait, open, text, strings.Join(values, ", "))
	return out, nil
}

// withoutComments leaves out the lines of comments.
func withoutComments(text string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		start := strings.TrimLeft(line, " \t")
		isComment := inside || strings.HasPrefix(start, "/**") || strings.HasPrefix(start, "// ")
		if isComment && (inside || strings.HasPrefix(start, "/**")) {
			inside = !strings.Contains(line, "*/")
		}
		if !isComment {
			out.WriteString(line)
		}
	}
	return out.String()
}

// bundleStyles puts the sheets that a sheet imports into it.
func (s *snapshot) bundleStyles(name string) {
	sheet, ok := s.assets[name]
	if !ok {
		return
	}
	joined := styleImport.ReplaceAllStringFunc(string(sheet.Plain), func(found string) string {
		m := styleImport.FindStringSubmatch(found)
		text := string(s.assets[path.Join(path.Dir(name), m[1])].Plain)
		if m[3] != "" {
			return "@layer " + m[3] + " {\n" + text + "\n}\n"
		}
		return text
	})
	s.assets[name] = newFile(sheet.Kind, []byte(joined))
}
