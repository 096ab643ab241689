package types

// lookAlikes maps ASCII letters to the characters that look like them. It is a part of confusables.txt, the data of Unicode
// Technical Standard 39 (Unicode Security Mechanisms), version 15.0.0, as in ICU 72. It has the characters that folding and
// normal form KC leave unchanged, and whose folded skeleton is one ASCII letter. The skeleton "rn" is an m there. Copyright
// © 1991-2022 Unicode, Inc., under the Unicode License v3 (https://www.unicode.org/license.txt).
var lookAlikes = map[byte]string{
	'a': "\u0251\u03b1\u0430\u13aa\u15c5\ua4ee\U000102a0\U00016f40",
	'b': "\u13cf\u13f4\u1472\u15af\u15f7\ua4d0\U00010282\U000102a1\U00010301",
	'c': "\u0441\u13df\u1d04\u2ca5\ua4da\U000102a2\U00010302\U0001043d\U0001051c\U000118e9\U000118f2",
	'd': "\u0501\u13a0\u13e7\u146f\u15de\u15ea\ua4d2\ua4d3",
	'e': "\u0435\u04bd\u13ac\u2d39\ua4f0\uab32\U00010286",
	'f': "\u0584\u15b4\u1e9d\ua4dd\ua799\uab35\U00010287\U000102a5\U00010525\U000118c2",
	'g': "\u018d\u0261\u0581\u13c0\u13f3\u1d83\ua4d6",
	'h': "\u04bb\u0570\u13bb\u13c2\u157c\ua4e7\U000102cf",
	'i': "\u0131\u0269\u026a\u03b9\u0456\u04cf\u13a5\ua647\U000118c3",
	'j': "\u03f3\u0458\u13ab\u148d\ua4d9",
	'k': "\u13e6\u16d5\ua4d7\U00010518",
	'l': "\u01c0\u05d5\u05df\u0627\u0661\u06f1\u07ca\u13de\u14aa\u16c1\u2d4f\ua4e1\ua4f2\U0001028a\U00010309\U00010320\U00010526\U00016f16\U00016f28\U0001e8c7",
	'm': "\u13b7\u15f0\u16d6\ua4df\U000102b0\U00010311\U00011700\U000118e3",
	'n': "\u0578\u057c\ua4e0\U00010513",
	'o': "\u03bf\u03c3\u043e\u0585\u05e1\u0647\u0665\u06be\u06c1\u06d5\u06f5\u07c0\u0966\u09e6\u0a66\u0ae6\u0b20\u0b66\u0be6\u0c02\u0c66\u0c82\u0ce6\u0d02\u0d20\u0d66\u0d82\u0e50\u0ed0\u101d\u1040\u10ff\u12d0\u1d0f\u1d11\u2c9f\u2d54\u3007\ua4f3\uab3d\U00010292\U000102ab\U0001042c\U000104ea\U00010516\U000114d0\U000118c8\U000118d7\U000118e0",
	'p': "\u03c1\u0440\u13e2\u146d\u2ca3\ua4d1\U00010295",
	'q': "\u051b\u0563\u0566\u2d55",
	'r': "\u0433\u13a1\u13d2\u1587\u1d26\u2c85\ua4e3\uab47\uab48\U00016f35",
	's': "\u01bd\u0455\u13d5\u13da\ua4e2\ua731\U00010296\U00010448\U000118c1\U00016f3a",
	't': "\u13a2\ua4d4\U00010297\U000102b1\U00010315\U00016f0a",
	'u': "\u028b\u03c5\u057d\u1200\u144c\u1d1c\ua4f4\ua79f\uab4e\uab52\U000104f6\U000118d8\U00016f42",
	'v': "\u03bd\u0475\u05d8\u0667\u06f7\u13d9\u142f\u1d20\u2d38\ua4e6\ua6df\U0001051d\U00011706\U000118c0\U00016f08",
	'w': "\u026f\u0461\u051d\u0561\u13b3\u13d4\u1d21\ua4ea\U0001170a\U0001170e\U0001170f\U000118e6\U000118ef",
	'x': "\u0445\u1541\u157d\u16b7\u2d5d\ua4eb\U00010290\U000102b4\U00010317\U00010322\U00010527\U000118ec",
	'y': "\u0263\u028f\u03b3\u0443\u04af\u10e7\u13a9\u13bd\u1d8c\u1eff\ua4ec\uab5a\U000102b2\U000118dc\U00016f43",
	'z': "\u13c3\u1d22\ua4dc\U000102f5\U000118c4\U000118e5",
}

// capitalLookAlikes maps ASCII letters to the characters that look like them and whose folded form does not. It is from the
// same data as lookAlikes.
var capitalLookAlikes = map[byte]string{
	'b': "\u0184\u042c\ua7b4",
	'c': "\u03f9\uabaf",
	'e': "\U000118a6\U000118ae",
	'f': "\u03dc",
	'g': "\u050c",
	'h': "\u0397\u2c8e",
	'i': "\uab75",
	'j': "\ua7b2",
	'k': "\u2c94",
	'l': "\u2c92\u2cd0\U0001041b\U000118b2",
	'm': "\u03fa\u2c98",
	'n': "\u039d\u2c9a",
	'o': "\U000118b5",
	'r': "\u01a6\uab81\U000104b4",
	's': "\u054f\uabaa",
	't': "\u2ca6\U000118bc",
	'v': "\uaba9",
	'w': "\uab83",
	'x': "\u2cac\ua7b3",
	'y': "\u03a5\u2ca8\U000118a4",
	'z': "\uab93\U000118a9",
}
