// Package symbol finds and decodes QR codes in grey images, also in bad ones.
//
// Clear codes are read by the gozxing library. For the others the package has a
// path of its own, which uses what every QR code tells about itself: the places
// of finder, timing and alignment patterns and of their modules are known in
// advance. A perspective model is fitted to them, bent paper is followed along
// the alignment patterns, blur is undone by a filter trained on them, and the
// error correction is told which codewords are least certain. What comes out
// must still satisfy the error correction with check symbols to spare, so
// a doubtful code stays unread.
package symbol
