// Package symbol finds and decodes QR codes in grey images, including damaged ones.
//
// The gozxing library reads clear codes. For other codes, the package uses the modules that every QR code has in common:
// the finder, timing and alignment patterns. It fits a perspective model to them, corrects for bent paper with the alignment
// patterns, reduces blur with a filter trained on the patterns, and passes the least certain codewords to the error
// correction as erasures. A result must satisfy the error correction with check symbols to spare, so that an uncertain code
// is not read rather than misread.
package symbol
