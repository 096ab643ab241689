package settings

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxBankName = 60 // characters

var bankName = text("name", func(raw string) (string, error) {
	if strings.ContainsFunc(raw, unicode.IsControl) {
		return "", errors.New("must not contain control characters")
	}
	if n := utf8.RuneCountInString(raw); n == 0 || n > maxBankName {
		return "", errors.New("must have 1 to 60 characters")
	}
	return raw, nil
})

var hexColor = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// minContrast is the least contrast with white. Text in the colour then has 4.5, as WCAG 2 demands, on all light surfaces of the
// console, and text in the lighter colour of the dark theme (web/app/theme.js) on all dark ones.
const minContrast = 5.2

var darkColor = text("colour", func(raw string) (string, error) {
	if !hexColor.MatchString(raw) {
		return "", errors.New("must be a colour such as #0d5c63")
	}
	if 1.05/(luminance(raw)+0.05) < minContrast {
		return "", errors.New("must be darker: text in it, and white text on it, would be hard to read")
	}
	return raw, nil
})

// luminance returns the relative luminance of a colour such as #0d5c63, by WCAG 2.
func luminance(color string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, _ := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8) // The pattern has checked the digits.
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}
