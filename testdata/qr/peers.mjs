// Runs other readers of QR codes on the pages that BenchmarkPeer_Gozxing wrote:
//
//   npm install zxing-wasm @undecaf/zbar-wasm
//   node peers.mjs FOLDER
//
// A file counts as read when a code on one of its pages contains the IBAN of its bill.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(pathToFileURL(join(process.cwd(), 'package.json')))
const zxing = require('zxing-wasm/reader')
const zbar = require('@undecaf/zbar-wasm')
const folder = process.argv[2]
zxing.prepareZXingModule({ overrides: { wasmBinary: readFileSync(require.resolve('zxing-wasm/reader/zxing_reader.wasm')).buffer } })

function pgm(name) {
  const data = readFileSync(join(folder, name))
  const [, width, height] = data.subarray(0, 32).toString('latin1').match(/^P5\n(\d+) (\d+)\n255\n/).map(Number)
  const gray = data.subarray(data.length - width * height)
  return { width, height, gray }
}

async function byZXing({ width, height, gray }) {
  const rgba = new Uint8ClampedArray(4 * width * height)
  for (let i = 0; i < gray.length; i++) rgba.set([gray[i], gray[i], gray[i], 255], 4 * i)
  const found = await zxing.readBarcodes({ width, height, data: rgba }, { formats: ['QRCode'], tryHarder: true, maxNumberOfSymbols: 8 })
  return found.map((f) => f.text)
}

async function byZBar({ width, height, gray }) {
  const copy = new Uint8Array(gray).buffer
  const found = await zbar.scanGrayBuffer(copy, width, height)
  return found.map((f) => f.decode('utf-8'))
}

const table = {}
for (const { Category, IBAN, Pages } of JSON.parse(readFileSync(join(folder, 'pages.json')))) {
  const row = (table[Category] ??= { files: 0, 'zxing-cpp': 0, zbar: 0 })
  row.files++
  for (const [name, read] of [['zxing-cpp', byZXing], ['zbar', byZBar]]) {
    for (const page of Pages) {
      const texts = await read(pgm(page))
      if (texts.some((t) => t.toUpperCase().includes(IBAN))) {
        row[name]++
        break
      }
    }
  }
}
console.table(table)
