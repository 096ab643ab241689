package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

type unit struct {
	suffix string
	factor int64
}

// Binary units come first, in descending order: show uses the first that divides the value.
var sizeUnits = []unit{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1_000_000_000}, {"MB", 1_000_000}, {"kB", 1_000}, {"B", 1},
}

var pixelUnits = []unit{{"MP", 1_000_000}}

// size parses bytes: 5MiB, 5 MB or a plain number.
func size(lowest, highest int64) kind[int64] {
	return measured("size", sizeUnits, lowest, highest)
}

// pixels parses a number of pixels: 40MP (megapixels) or a plain number.
func pixels(lowest, highest int64) kind[int64] {
	return measured("pixels", pixelUnits, lowest, highest)
}

func measured(name string, units []unit, lowest, highest int64) kind[int64] {
	show := func(n int64) string { return showMeasure(n, units) }
	return kind[int64]{
		name: name,
		parse: func(raw string) (int64, error) {
			n, ok := parseMeasure(raw, units)
			if !ok || n < lowest || n > highest {
				return 0, fmt.Errorf("must be from %s to %s, written as a plain number or with a unit (%s)",
					show(lowest), show(highest), suffixes(units))
			}
			return n, nil
		},
		show: show,
		json: itself[int64],
	}
}

func parseMeasure(raw string, units []unit) (int64, bool) {
	factor := int64(1)
	for _, u := range units {
		if cut := len(raw) - len(u.suffix); cut > 0 && strings.EqualFold(raw[cut:], u.suffix) {
			raw, factor = strings.TrimRight(raw[:cut], " "), u.factor
			break
		}
	}
	n, err := whole(raw, 0, math.MaxInt64/factor)
	return n * factor, err == nil
}

func showMeasure(n int64, units []unit) string {
	for _, u := range units {
		if n >= u.factor && n%u.factor == 0 && u.factor > 1 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

func suffixes(units []unit) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.suffix
	}
	return strings.Join(names, ", ")
}
