package treetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// layer is a group of packages with the project's packages that they may import, and the reason.
type layer struct {
	packages string // a pattern of import paths below the module
	may      []string
	because  string
}

// layers are the layers of docs/architecture.md. A package belongs to the first pattern that it matches. Every package may
// import the packages below its own path, such as store/engine below store.
var layers = []layer{
	{`\.`, []string{"modules/commands"}, "main only hands over to the commands"},
	{`store/storetest`, []string{"store", "store/engine", "store/inspect", "store/postgres", "store/postgres/postgrestest", "store/testenv"}, "it gives tests a database and knows nothing of what is in it"},
	{`store/testenv`, nil, "tests of every package ask it"},
	{`store/postgres/postgrestest`, []string{"store/testenv"}, "it starts PostgreSQL for tests of every package, also for those below the store"},
	{`store`, nil, "the store knows no module and no HTTP: its users must be testable without a server"},
	{`store/clock|store/sealing|store/migrations|store/sqlite/internal/binding`, nil, "leaves of the store import no other package of this module"},
	{`store/datadir`, []string{"store/sealing"}, "the data directory knows no database, only the names of its files"},
	{`store/engine`, []string{"store/clock", "store/datadir"}, "the contract knows no engine"},
	{`store/engine/enginetest`, []string{"store/engine", "store/query", "store/clock", "store/datadir"}, "the suite tests any engine by the contract alone"},
	{`store/query`, []string{"store/engine", "store/clock"}, "it runs statements on any engine"},
	{`store/audittrail`, []string{"store/engine", "store/query", "store/clock", "store/sealing"}, "it works on any engine"},
	{`store/fulltext`, []string{"store/engine", "store/query"}, "the words of records depend on no module and on no engine"},
	{`store/erasures`, []string{"store/clock", "store/datadir"}, "the ledger is a file and knows no database"},
	{`store/idempotency`, []string{"store/engine", "store/query", "store/audittrail", "store/sealing"}, "it works on any engine"},
	{`store/sqlite`, []string{"store/engine", "store/query", "store/clock", "store/datadir", "store/internal/jobs", "store/internal/probe", "store/internal/readers"},
		"an engine implements the contract and knows nothing of what is above it"},
	{`store/internal/[a-z]+`, []string{"store/engine", "store/query", "store/clock"}, "the engines share it"},
	{`store/postgres(/internal/bus)?`, []string{"store/engine", "store/query", "store/clock", "store/internal/jobs", "store/internal/probe", "store/internal/readers"},
		"an engine implements the contract and knows nothing of what is above it"},
	{`store/transfer`, []string{"store/inspect", "store/postgres", "store/sqlite", "store/erasures", "store/audittrail", "store/engine", "store/query", "store/clock", "store/datadir", "store/sealing"},
		"it copies a database between engines without opening it"},
	{`store/inspect`, []string{"store/sqlite", "store/postgres", "store/audittrail", "store/engine", "store/query", "store/clock", "store/datadir", "store/sealing"},
		"it reads a database without opening it"},
	{`store/backup`, []string{"store/inspect", "store/sqlite", "store/erasures", "store/audittrail", "store/engine", "store/clock", "store/datadir", "store/sealing"},
		"it copies the files of a database without opening it"},
	{`store/backup/continuous`, []string{"store/backup", "store/inspect", "store/sqlite", "store/engine", "store/clock", "store/datadir", "store/sealing"},
		"it ships recordings of the engine and restores them like a backup"},
	{`licences|locales|server/etag|server/accept|server/compression|server/csvtable|server/access|server/apierr|server/metrics|server/ratelimit|server/similar|server/sse|server/certs|modules/kit/types|modules/kit/names|modules/kit/exif|modules/kit/sandbox`, nil,
		"leaves import no other package of this module, so that everything may import them"},
	{`web`, []string{"server/etag"}, "the console is files: it knows no API but the public one"},
	{`server/settings`, []string{"server/similar"}, "the registry depends on no setting's use"},
	{`server/endpoint`, []string{"server/etag", "server/access", "server/apierr", "server/ratelimit", "server/similar"}, "a row of the table says what an operation is, not how it is served"},
	{`server/openapi`, []string{"server/endpoint", "server/access", "server/apierr", "server/ratelimit"}, "the document is made of the table alone"},
	{`server`, []string{"server/etag", "server/accept", "server/compression", "server/csvtable", "server/endpoint", "server/openapi", "server/access", "server/apierr", "server/metrics", "server/ratelimit", "server/sse", "locales", "web"},
		"the server serves any table: it knows neither modules nor the database"},
	{`server/openapi/openapitest`, []string{"server/openapi", "server/endpoint"}, "it compares answers with the document, whoever gave them"},
	{`server/client|server/client/generate`, nil, "programs outside of this module import the client, so it must bring nothing along"},
	{`server/sdk`, []string{"server/etag"}, "it packs files that it is given"},
	{`server/client/example`, []string{"server/client"}, "it is a program like those of other modules"},
	{`server/servertest|server/client/clienttest|web/browser(/screenshots)?`, []string{"*"}, "tests start everything"},
	{`modules/commands/systemtest`, []string{"store/testenv"}, "it knows the program by its commands, its API and its files"},
	{`modules/commands`, []string{"*"}, "the command line puts everything together"},
	{`modules/demo/(benchtable|listtimes)`, nil, "they measure from outside"},
	{`modules/demo(/dataset)?`, []string{"*"}, "the demonstration bank uses the modules as an operator would"},
	{`modules/bank/invoices/qrbill(/.*)?`, []string{"modules/kit/exif", "modules/kit/sandbox"}, "the reader of bills is a library of its own"},
	{`modules/duty/screening/lists`, []string{"modules/kit/names"}, "it reads files and knows neither the database nor a customer"},
	{`modules/identity/auth/breached`, nil, "it searches a file and knows no other package of this module"},
	{`modules/identity/auth/hashing`, []string{"modules/kit/sandbox"}, "it computes sums and knows no user"},
	{`modules/identity/oidc/oidctest`, nil, "it plays a provider, which knows nothing of Kontor"},
	{`modules/app`, []string{"*"}, "here, and only here, modules meet"},
	{`modules/kit/attachment`, []string{"server/access", "store"}, "it declares interfaces for siblings that must not import each other"},
	{`modules/kit/find`, []string{"modules/kit/types", "modules/kit/list", "store"}, "it declares an interface for siblings that must not import each other"},
	{`modules/kit/change`, []string{"store"}, "it declares a type for siblings that must not import each other"},
	{`modules/kit/outbox`, []string{"store"}, "it sends the rows of any table and knows no module"},
	{`modules/kit/outbound`, nil, "it calls any address and knows no module"},
	{`modules/kit/event`, []string{"server/access"}, "it names events for siblings that must not import each other"},
	{`modules/kit/factor`, []string{"store"}, "it declares types for siblings that must not import each other"},
	{`modules/kit/signin`, []string{"modules/kit/factor", "server/apierr", "store"}, "it declares a rule that siblings share which must not import each other"},
	{`modules/kit/revocable`, nil, "it caches values of any type"},
	{`modules/kit/personal`, []string{"modules/kit/records", "server/access", "server/apierr", "server/endpoint", "store"}, "it declares an interface for siblings that must not import each other"},
	{`modules/kit/validate`, []string{"modules/kit/types", "server/apierr"}, "it checks input and decides nothing else"},
	{`modules/kit/list`, []string{"modules/kit/types", "server/endpoint", "server/apierr", "store"}, "lists know no record of any module"},
	{`modules/kit/records`, []string{"modules/kit/list", "modules/kit/types", "server/access", "server/endpoint", "server/apierr", "store", "store/audittrail"}, "records know no record of any module"},
	{`modules/kit/recordtype`, []string{"modules/kit/find", "modules/kit/list", "modules/kit/personal", "modules/kit/records", "modules/kit/types", "modules/kit/validate",
		"server/access", "server/endpoint", "server/apierr", "store"}, "it knows no record type of any module"},
	{`modules/duty/audit`, []string{"modules/kit/personal", "modules/kit/types", "modules/kit/validate", "modules/kit/list", "modules/kit/records", "modules/kit/event",
		"server/access", "server/endpoint", "server/apierr", "server/ratelimit", "server/sse", "store", "store/audittrail"},
		"it shows, verifies and exports the audit trail, and is a module like the others"},
	{`modules/bank/files`, []string{"modules/kit/attachment", "modules/kit/personal", "modules/kit/types", "modules/kit/records",
		"server/access", "server/endpoint", "server/etag", "server/apierr", "server/ratelimit", "store", "store/audittrail"},
		"it keeps files of the records of other modules, checks their content against the audit trail, and is a module like the others"},
	{`modules/bank/imports`, []string{"modules/kit/personal", "modules/kit/types", "modules/kit/list", "server/access", "server/endpoint", "server/apierr",
		"server/csvtable", "server/ratelimit", "store"}, "it reads the tables that the server writes, and is a module like the others"},
	{`modules/duty/screening`, []string{"modules/kit/names", "modules/kit/personal", "modules/kit/types", "modules/kit/validate", "modules/kit/list", "modules/kit/records",
		"server/endpoint", "server/access", "server/apierr", "server/ratelimit", "store"}, "modules never import each other"},
	{`modules/developer/playground/seed`, []string{"locales", "server/endpoint", "server/access", "server/apierr", "server/ratelimit", "store"},
		"it sends requests to the API and knows no other module"},
	{`modules/(identity|bank|reach|duty|developer)/[a-z]+|modules/app/certificates`, []string{"modules/kit/attachment", "modules/kit/exif", "modules/kit/find", "modules/kit/revocable", "modules/kit/personal", "modules/kit/types", "modules/kit/names", "modules/kit/validate", "modules/kit/list", "modules/kit/records", "modules/kit/recordtype", "modules/kit/event", "modules/kit/factor", "modules/kit/signin", "modules/kit/change", "modules/kit/outbound", "modules/kit/outbox", "modules/kit/sandbox",
		"server/access", "server/endpoint", "server/etag", "server/apierr", "server/metrics", "server/ratelimit", "server/sse", "store"},
		"modules never import each other: declare an interface for what is needed, and let modules/app pass the implementation"},
}

const modulePath = "kontor"

// TestArrows_PointDown reads the imports of every package, those of its tests aside, and compares them with the layers.
func TestArrows_PointDown(t *testing.T) {
	t.Chdir(testenv.Root())
	for directory, imports := range importsByPackage(t) {
		l, ok := layerOf(directory)
		if !ok {
			t.Errorf("package %s belongs to no layer: give it one here and in docs/architecture.md", directory)
			continue
		}
		for _, imported := range imports {
			below := strings.HasPrefix(imported, directory+"/")
			if !below && !slices.Contains(l.may, imported) && !slices.Contains(l.may, "*") {
				t.Errorf("%s imports %s and may not: %s", directory, imported, l.because)
			}
		}
	}
}

func layerOf(directory string) (layer, bool) {
	for _, l := range layers {
		if regexp.MustCompile(`^(` + l.packages + `)$`).MatchString(directory) {
			return l, true
		}
	}
	return layer{}, false
}

// importsByPackage returns the imports of each package within the project, by directory.
func importsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() && name != "." && isModule(name) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		directory := path.Dir(filepath.ToSlash(name))
		found[directory] = append(found[directory], ours(file.Imports)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isModule reports whether a directory is a module of its own, such as a sample program.
func isModule(directory string) bool {
	_, err := os.Stat(filepath.Join(directory, "go.mod"))
	return err == nil
}

// ours keeps the imports that are packages of this module.
func ours(specs []*ast.ImportSpec) []string {
	var kept []string
	for _, spec := range specs {
		name, err := strconv.Unquote(spec.Path.Value)
		if below, ok := strings.CutPrefix(name, modulePath+"/"); ok && err == nil {
			kept = append(kept, below)
		}
	}
	return kept
}

// TestArrows_AreThoseOfTheDocument checks that the description of the architecture lists every package.
func TestArrows_AreThoseOfTheDocument(t *testing.T) {
	t.Chdir(testenv.Root())
	document, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for directory := range importsByPackage(t) {
		if directory != "." && !strings.Contains(string(document), "`"+directory+"`") {
			t.Errorf("docs/architecture.md does not name the package `%s`", directory)
		}
	}
}
