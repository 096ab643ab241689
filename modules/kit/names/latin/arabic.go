package latin

import (
	"strings"
	"unicode/utf8"
)

// arabic adds to Unidecode's tables what they read as signs. persian has the sounds of Persian, and persianGh those of ق as gh.
var (
	arabic    = pairs(`ا a أ a إ a آ a ى a ع - ء - ئ y ؤ w ة a ه h ھ h ہ h ۀ h ح h خ kh ج j چ ch پ p ژ zh گ g ک k ك k ي y ی y و w ث th ذ dh ص s ض d ط t ظ z ش sh س s ز z ر r د d ت t ب b ف f ق q غ gh ل l م m ن n`)
	persian   = with(arabic, `ث s ذ z ض z ظ z و v`)
	persianGh = with(persian, `ق gh`)
)

const article = "ال"

// arabicWords reads a word in Arabic and in Persian, and without an article that is joined to it.
func arabicWords(text string) []Word {
	const vowels = "عإأآا"
	words := semitic(text, vowels, by(text, arabic), by(text, persian), by(text, persianGh))
	if rest, has := strings.CutPrefix(text, article); has && utf8.RuneCountInString(rest) > 2 && len(words) > 0 {
		words[0].Readings = append(words[0].Readings, semitic(rest, vowels, by(rest, arabic))[0].Readings...)
	}
	return words
}
