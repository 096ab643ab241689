package seed

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// scenarioFiles are the scenarios. Those in parts are steps that others begin with: they make people.
//
//go:embed scenarios/*.yaml scenarios/parts/*.yaml
var scenarioFiles embed.FS

const scenarioFolder, scenarioEnd = "scenarios", ".yaml"

// Scenarios returns the names of the scenarios in alphabetical order.
var Scenarios = sync.OnceValue(func() (names []string) {
	entries, err := scenarioFiles.ReadDir(scenarioFolder)
	if err != nil {
		panic(err) // it is in the executable
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), scenarioEnd); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
})

// Scenario returns a new copy of a scenario.
func Scenario(name string) (*File, error) {
	data, err := scenarioFiles.ReadFile(path.Join(scenarioFolder, name+scenarioEnd))
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	file, err := parse(data, partFile)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", name, err)
	}
	return file, nil
}

// partFile returns steps that a scenario begins with.
func partFile(name string) ([]byte, error) {
	return scenarioFiles.ReadFile(path.Join(scenarioFolder, "parts", name+scenarioEnd))
}
