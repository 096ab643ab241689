// Package types holds small types that several modules share: countries, calendar dates, languages,
// phone numbers, e-mail addresses, names, ids and plain texts. Values are parsed once, where they
// enter the program, and are valid afterwards: every Country is three capital letters.
//
// Parsers return a [Rule] for invalid input, so that callers can report it in the reader's language.
// The package does not depend on HTTP, storage or translations.
package types

import (
	"strings"

	"github.com/google/uuid"
)

// Rule is the error of every parser in this package: the rule that the input breaks. It is a stable
// name, for example "country". The text for people has the key "invalid.<rule>"; a test compares the
// two.
type Rule string

// The rules, by what the input should have been.
const (
	RuleRequired Rule = "required"           // something that is not empty
	RuleTooLong  Rule = "max_length"         // no longer than allowed; the caller sets Max in the text
	RuleText     Rule = "control_characters" // text without control characters, in valid UTF-8
	RuleCountry  Rule = "country"            // an ISO 3166-1 country or Kosovo
	RuleAlpha3   Rule = "country_alpha3"     // a code of three capital letters
	RuleDate     Rule = "date"               // a calendar date that exists, YYYY-MM-DD
	RuleLanguage Rule = "language"           // en, de, fr or it
	RulePhone    Rule = "phone"              // a phone number that can be dialled
	RuleEmail    Rule = "email"              // a well-formed e-mail address
	RuleID       Rule = "uuid"               // a UUID

	RuleDisplayName Rule = "display_name" // a name of visible characters with at least one letter or digit
)

// Error returns the name of the rule.
func (r Rule) Error() string { return string(r) }

// Text returns the key of the text for people, for decoders that report the rule to the client.
func (r Rule) Text() (key string, args map[string]any) { return "invalid." + string(r), nil }

// NilIfEmpty returns a pointer to the text, or nil for the empty text.
func NilIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// EmptyIfNil returns the text that p points to, or the empty text for nil.
func EmptyIfNil(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// idLength is the length of a UUID as text: 32 digits and four hyphens.
const idLength = 36

// ParseID parses a UUID in its canonical form, in letters of either case, and returns it in lower
// case, as it is stored. It returns RuleID for braces, URN prefixes and missing hyphens, so that
// an id has one spelling.
func ParseID(s string) (string, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != idLength {
		return "", RuleID
	}
	return id.String(), nil
}

// IsID reports whether [ParseID] accepts s.
func IsID(s string) bool {
	_, err := ParseID(s)
	return err == nil
}

// FoldID returns the stored form of a UUID, and other texts unchanged. It is for lists whose ids are not all of Kontor.
func FoldID(text string) string {
	if id, err := ParseID(text); err == nil {
		return id
	}
	return text
}

// Language is one of the languages in which Kontor answers.
type Language string

// The languages, in the order of preference.
const (
	English Language = "en"
	German  Language = "de"
	French  Language = "fr"
	Italian Language = "it"
)

// ParseLanguage parses the two-letter code of a language, in lower case, as it is stored and shown.
// It returns RuleLanguage for others. The server selects a language by the Accept-Language header.
func ParseLanguage(s string) (Language, error) {
	switch l := Language(s); l {
	case English, German, French, Italian:
		return l, nil
	}
	return "", RuleLanguage
}

// String returns the two-letter code.
func (l Language) String() string { return string(l) }

// Address is where messages reach a user.
type Address struct {
	UserID   string
	Channel  string // email or sms
	Value    string // the e-mail address or phone number
	Language string // in which the user reads messages
	OnTrial  bool   // it was added a short time ago (see the package signin)
}

// Country is a code of three capital letters: usually an ISO 3166-1 alpha-3 code such as CHE.
type Country string

// ParseCountry parses a code of three capital letters, the form of nationalities. It takes codes outside ISO 3166-1, too: XKX of
// Kosovo, and those of ICAO 9303-3 for stateless people (XXA) and refugees (XXB, XXC). It returns RuleAlpha3 for other texts.
func ParseCountry(s string) (Country, error) {
	if len(s) != alpha3Length || strings.Trim(s, capitals) != "" {
		return "", RuleAlpha3
	}
	return Country(s), nil
}

const (
	alpha3Length = 3
	capitals     = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// CountryOf parses the alpha-2 or the alpha-3 code of a country in ISO 3166-1 or of Kosovo, in upper case. It returns RuleCountry
// for other texts, such as the codes of people without a nationality.
func CountryOf(s string) (Country, error) {
	if alpha3, known := alpha3ByAlpha2[s]; known {
		return Country(alpha3), nil
	}
	if _, known := alpha2ByAlpha3[s]; known {
		return Country(s), nil
	}
	return "", RuleCountry
}

// String returns the alpha-3 code.
func (c Country) String() string { return string(c) }

var alpha2ByAlpha3, alpha3ByAlpha2 = countryTables()

func countryTables() (byAlpha3, byAlpha2 map[string]string) {
	n := len(countryCodes) / countryCodeStep
	byAlpha3, byAlpha2 = make(map[string]string, n), make(map[string]string, n)
	for i := 0; i < len(countryCodes); i += countryCodeStep {
		alpha2, alpha3 := countryCodes[i:i+2], countryCodes[i+2:i+5]
		byAlpha3[alpha3], byAlpha2[alpha2] = alpha2, alpha3
	}
	return byAlpha3, byAlpha2
}

// countryCodeStep is the length of one entry of countryCodes: alpha-2, alpha-3 and a separator.
const countryCodeStep = 6

// countryCodes holds the 249 officially assigned codes of ISO 3166-1, alpha-2 followed by alpha-3, and the user-assigned codes of
// Kosovo, which passports and postal services use.
const countryCodes = "" +
	"ADAND AEARE AFAFG AGATG AIAIA ALALB AMARM AOAGO AQATA ARARG ASASM ATAUT AUAUS AWABW " +
	"AXALA AZAZE " +
	"BABIH BBBRB BDBGD BEBEL BFBFA BGBGR BHBHR BIBDI BJBEN BLBLM BMBMU BNBRN BOBOL BQBES " +
	"BRBRA BSBHS BTBTN BVBVT BWBWA BYBLR BZBLZ " +
	"CACAN CCCCK CDCOD CFCAF CGCOG CHCHE CICIV CKCOK CLCHL CMCMR CNCHN COCOL CRCRI CUCUB " +
	"CVCPV CWCUW CXCXR CYCYP CZCZE " +
	"DEDEU DJDJI DKDNK DMDMA DODOM DZDZA " +
	"ECECU EEEST EGEGY EHESH ERERI ESESP ETETH " +
	"FIFIN FJFJI FKFLK FMFSM FOFRO FRFRA " +
	"GAGAB GBGBR GDGRD GEGEO GFGUF GGGGY GHGHA GIGIB GLGRL GMGMB GNGIN GPGLP GQGNQ GRGRC " +
	"GSSGS GTGTM GUGUM GWGNB GYGUY " +
	"HKHKG HMHMD HNHND HRHRV HTHTI HUHUN " +
	"IDIDN IEIRL ILISR IMIMN ININD IOIOT IQIRQ IRIRN ISISL ITITA " +
	"JEJEY JMJAM JOJOR JPJPN " +
	"KEKEN KGKGZ KHKHM KIKIR KMCOM KNKNA KPPRK KRKOR KWKWT KYCYM KZKAZ " +
	"LALAO LBLBN LCLCA LILIE LKLKA LRLBR LSLSO LTLTU LULUX LVLVA LYLBY " +
	"MAMAR MCMCO MDMDA MEMNE MFMAF MGMDG MHMHL MKMKD MLMLI MMMMR MNMNG MOMAC MPMNP MQMTQ " +
	"MRMRT MSMSR MTMLT MUMUS MVMDV MWMWI MXMEX MYMYS MZMOZ " +
	"NANAM NCNCL NENER NFNFK NGNGA NINIC NLNLD NONOR NPNPL NRNRU NUNIU NZNZL " +
	"OMOMN " +
	"PAPAN PEPER PFPYF PGPNG PHPHL PKPAK PLPOL PMSPM PNPCN PRPRI PSPSE PTPRT PWPLW PYPRY " +
	"QAQAT " +
	"REREU ROROU RSSRB RURUS RWRWA " +
	"SASAU SBSLB SCSYC SDSDN SESWE SGSGP SHSHN SISVN SJSJM SKSVK SLSLE SMSMR SNSEN SOSOM " +
	"SRSUR SSSSD STSTP SVSLV SXSXM SYSYR SZSWZ " +
	"TCTCA TDTCD TFATF TGTGO THTHA TJTJK TKTKL TLTLS TMTKM TNTUN TOTON TRTUR TTTTO TVTUV " +
	"TWTWN TZTZA " +
	"UAUKR UGUGA UMUMI USUSA UYURY UZUZB " +
	"VAVAT VCVCT VEVEN VGVGB VIVIR VNVNM VUVUT " +
	"WFWLF WSWSM " +
	"XKXKX " +
	"YEYEM YTMYT " +
	"ZAZAF ZMZMB ZWZWE "
