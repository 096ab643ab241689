package web

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dependency matches the use of a module in a bundle.
var dependency = regexp.MustCompile(`\$m\["([^"]+)"\][.;]`)

// KONTOR_BUNDLES names a folder that gets the bundles, to look at.
func TestBundles_HoldWhatTheyNeed(t *testing.T) {
	s, err := read(embedded, Options{})
	if err != nil {
		t.Fatal(err)
	}
	main := string(s.assets[mainModule].Plain)
	for name, f := range s.assets {
		text := string(f.Plain)
		if path.Ext(name) != ".js" || !strings.Contains(text, "globalThis.kontorModules") {
			continue
		}
		for _, used := range dependency.FindAllStringSubmatch(text, -1) {
			if held := `$m["` + used[1] + `"] ??=`; !strings.Contains(text, held) && !strings.Contains(main, held) {
				t.Errorf("%s lacks %s", name, used[1])
			}
		}
		if dir := os.Getenv("KONTOR_BUNDLES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "_")), f.Plain, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	screens, err := fs.Glob(embedded, "app/screens/*.js")
	if err != nil || len(screens) < 10 || !strings.HasPrefix(string(s.assets["app/screens/signin.js"].Plain), "const $m = ") {
		t.Errorf("the sign-in is not a bundle (%d screens, %v)", len(screens), err)
	}
}

func TestModuleOf_RefusesOtherForms(t *testing.T) {
	for _, text := range []string{"import * as all from './a.js';", "export * from './a.js';", "import './a.js';", "export let one = 1;"} {
		if _, err := moduleOf("app/x.js", "/assets/1", text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	got, err := moduleOf("app/ui/x.js", "/assets/1", `import one, { a as b } from '../a.js';
export { c as d } from './c.js';
export const e = () => import('./f.js');
`)
	want := `$m["app/ui/x.js"] ??= (() => {
const one = $m["app/a.js"].default;const { a: b } = $m["app/a.js"];

const e = () => import('/assets/1/app/ui/f.js');

return { d: $m["app/ui/c.js"].c, e: e };
})();
`
	if err != nil || got.body != want {
		t.Errorf("got %s, %v; want %s", got.body, err, want)
	}
}
