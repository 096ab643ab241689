package settings

// Line is a setting in the output for operators.
type Line struct {
	Name        string `json:"name"`
	Value       any    `json:"value"` // a number, a text, true or false, or a list; secrets are masked
	Text        string `json:"-"`     // the value in the form of the file; secrets are masked
	Source      Source `json:"source"`
	Default     any    `json:"default"` // has the type of Value; the zero value means that there is no default
	DefaultText string `json:"-"`       // the default in the form of the file
	Environment string `json:"environment"`
	Flag        string `json:"flag,omitempty"`
	Meaning     string `json:"meaning"`
}

// Lines returns every setting with its value in force and the source of the value, in the order of the registry.
func (r *Result) Lines() []Line {
	lines := make([]Line, 0, len(registry))
	var defaults Settings
	for _, s := range registry {
		_ = s.set(&defaults, s.Default) // Load has accepted every default
		l := Line{
			Name:        s.Name,
			Value:       s.value(&r.Settings),
			Text:        s.show(&r.Settings),
			Source:      r.sources[s.Name],
			Default:     s.value(&defaults),
			DefaultText: s.Default,
			Environment: s.Env,
			Meaning:     s.Meaning,
		}
		if !s.EnvironmentOnly {
			l.Flag = "--" + s.Name
		}
		lines = append(lines, l)
	}
	return lines
}

// Source returns where the value of a setting comes from.
func (r *Result) Source(name string) Source { return r.sources[name] }
