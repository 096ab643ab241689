package treetest_test

import (
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kontor/store/testenv"
)

// compose is what the test reads of docs/cluster/compose.yaml.
type compose struct {
	Services map[string]struct {
		Environment map[string]string
		Volumes     []string
		Networks    map[string]struct {
			Address string `yaml:"ipv4_address"`
		}
	}
}

// made are the files beside compose.yaml that its first lines say how to make.
var made = []string{"bank.example.pem", "bank.example.key"}

// TestCompose_FitsTheFilesBesideIt compares docs/cluster/compose.yaml with nginx.conf and with the files that it mounts.
func TestCompose_FitsTheFilesBesideIt(t *testing.T) {
	text := readText(t, "docs/cluster/compose.yaml")
	var c compose
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	comments, _, _ := strings.Cut(text, "\nservices:")
	inProxy := map[string]bool{}
	for name, service := range c.Services {
		for _, volume := range service.Volumes {
			from, rest, _ := strings.Cut(volume, ":")
			to, _, _ := strings.Cut(rest, ":")
			inProxy[to] = inProxy[to] || name == "proxy"
			file, isFile := strings.CutPrefix(from, "./")
			if !isFile {
				continue
			}
			_, err := os.Stat(testenv.Path(path.Join("docs/cluster", file)))
			if isMade := slices.Contains(made, file) && strings.Contains(comments, file); (err == nil) == isMade {
				t.Errorf("%s mounts %s, which must either exist or be made as the first lines say (%v)", name, file, err)
			}
		}
	}
	conf := readText(t, "docs/cluster/nginx.conf")
	upstreams := regexp.MustCompile(`(?m)^\s*server (\S+:\d+) `).FindAllStringSubmatch(conf, -1)
	if len(upstreams) != 2 {
		t.Fatalf("nginx.conf has the servers %q, want two", upstreams)
	}
	for i, node := range []string{"node1", "node2"} {
		s := c.Services[node]
		_, port, _ := strings.Cut(s.Environment["KONTOR_SERVER_LISTEN"], ":")
		if want := s.Networks["bank"].Address + ":" + port; upstreams[i][1] != want {
			t.Errorf("nginx.conf sends requests to %s, and %s listens at %s", upstreams[i][1], node, want)
		}
		if got, want := s.Environment["KONTOR_SERVER_TRUSTED_PROXIES"], c.Services["proxy"].Networks["bank"].Address; got != want {
			t.Errorf("%s trusts the proxy %q, want %q", node, got, want)
		}
		u, err := url.Parse(regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(s.Environment["KONTOR_DATA_URL"], "x"))
		if err != nil || u.User.Username() != "kontor" || !strings.Contains(readText(t, "docs/cluster/create-role.sh"), "CREATE ROLE kontor LOGIN PASSWORD") {
			t.Errorf("%s does not sign in with the role of create-role.sh: %v, %v", node, u, err)
		}
	}
	for _, certificate := range regexp.MustCompile(`(?m)^\s*ssl_certificate(?:_key)? (\S+);`).FindAllStringSubmatch(conf, -1) {
		if !inProxy[certificate[1]] {
			t.Errorf("nginx.conf reads %s, which the container lacks", certificate[1])
		}
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(testenv.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
