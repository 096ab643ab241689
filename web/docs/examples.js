// Examples of a call in four languages, made from the API document.

/** The languages: key, name, and the function that returns the example of a call. */
export const LANGUAGES = [['curl', 'curl', curl], ['javascript', 'JavaScript', javascript], ['go', 'Go', go], ['python', 'Python', python]];

const FILE = 'file.pdf';
const SAMPLE_ID = '0193a000-0000-7000-8000-000000000001';

/** Follows a reference within the document. */
function resolve(spec, value) {
  if (!value?.$ref) return value;
  return value.$ref.slice(2).split('/').reduce((at, name) => at[name.replaceAll('~1', '/').replaceAll('~0', '~')], spec);
}

/** What an operation is called with: {method, url, headers: [name, value][], body, file}. */
export function callOf(spec, origin, path, method) {
  const operation = spec.paths[path][method];
  const parameters = (operation.parameters ?? []).map((one) => resolve(spec, one));
  const sample = ({ name, schema, example }) => encodeURIComponent(example ?? schema?.example ?? (name.endsWith('id') ? SAMPLE_ID : name));
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => sample(parameters.find((one) => one.name === name) ?? { name }));
  const query = parameters.filter((one) => one.in === 'query' && one.required).map((one) => `${one.name}=${sample(one)}`).join('&');
  const content = resolve(spec, operation.requestBody)?.content ?? {};
  const media = Object.keys(content);
  const headers = credentials(spec, operation);
  const call = { method: method.toUpperCase(), url: origin + filled + (query && `?${query}`), headers };
  if (media.includes('multipart/form-data')) return { ...call, file: FILE };
  if (media.includes('application/json')) {
    headers.push(['Content-Type', 'application/json']);
    return { ...call, body: bodyOf(spec, content['application/json']) };
  }
  if (media.length) return { ...call, headers: [...headers, ['Content-Type', media[0]]], raw: FILE };
  return call;
}

/** The header that proves who calls; its secret is in a variable of the environment. */
function credentials(spec, operation) {
  const name = Object.keys(operation.security?.[0] ?? {})[0];
  const scheme = name && spec.components.securitySchemes[name];
  if (!scheme) return [];
  return scheme.type === 'apiKey' ? [[scheme.name, { variable: 'KONTOR_API_KEY', before: '' }]]
    : [['Authorization', { variable: 'KONTOR_TOKEN', before: 'Bearer ' }]];
}

function bodyOf(spec, content) {
  return content.example ?? Object.values(content.examples ?? {})[0]?.value ?? sampleOf(spec, content.schema, 0);
}

/** An example for a schema: its own, or one made from its members. */
function sampleOf(spec, reference, depth) {
  const schema = resolve(spec, reference) ?? {};
  if (schema.example !== undefined) return schema.example;
  if (schema.examples?.length) return schema.examples[0];
  if (schema.enum) return schema.enum[0];
  const variant = schema.oneOf?.[0] ?? schema.anyOf?.[0] ?? schema.allOf?.[0];
  if (variant) return sampleOf(spec, variant, depth);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'object' && depth < 4) {
    const members = Object.entries(schema.properties ?? {}).filter(([name]) => depth === 0 || schema.required?.includes(name));
    return Object.fromEntries(members.map(([name, member]) => [name, sampleOf(spec, member, depth + 1)]));
  }
  if (type === 'array') return depth < 4 && schema.items ? [sampleOf(spec, schema.items, depth + 1)] : [];
  return { integer: 1, number: 1, boolean: true, object: {} }[type] ?? 'text';
}

const json = (value) => JSON.stringify(value, null, 2);
const indented = (text, by) => text.replaceAll('\n', `\n${by}`);
const plain = (headers, quote) => headers.map(([name, value]) => quote(name, value));

function curl({ method, url, headers, body, file, raw }) {
  const single = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const header = (name, value) => (typeof value === 'string'
    ? `-H ${single(`${name}: ${value}`)}`
    : `-H "${name}: ${value.before}$${value.variable}"`);
  const parts = [
    method === 'GET' ? `curl ${single(url)}` : `curl -X ${method} ${single(url)}`,
    ...plain(headers, header),
    body !== undefined && `-d ${single(json(body))}`,
    file && `-F 'file=@${file}'`,
    raw && `--data-binary '@${raw}'`,
  ];
  return parts.filter(Boolean).join(' \\\n  ');
}

function javascript({ method, url, headers, body, file, raw }) {
  const value = (text) => (typeof text === 'string' ? JSON.stringify(text) : `\`${text.before}\${process.env.${text.variable}}\``);
  const lines = [];
  if (file || raw) lines.push("import { openAsBlob } from 'node:fs';", '');
  if (file) lines.push('const form = new FormData();', `form.set('file', await openAsBlob('${file}'), '${file}');`, '');
  lines.push(`const response = await fetch(${JSON.stringify(url)}, {`, `  method: '${method}',`);
  if (headers.length) lines.push('  headers: {', ...headers.map(([name, text]) => `    ${JSON.stringify(name)}: ${value(text)},`), '  },');
  if (body !== undefined) lines.push(`  body: JSON.stringify(${indented(json(body), '  ')}),`);
  if (file) lines.push('  body: form,');
  if (raw) lines.push(`  body: await openAsBlob('${raw}'),`);
  lines.push('});', 'if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);');
  lines.push('console.log(await response.text());');
  return lines.join('\n');
}

function python({ method, url, headers, body, file, raw }) {
  const value = (text) => (typeof text === 'string'
    ? JSON.stringify(text)
    : `${text.before ? `"${text.before}" + ` : ''}os.environ["${text.variable}"]`);
  const words = { true: 'True', false: 'False', null: 'None' };
  const literal = (one) => json(one).replace(/("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g, (_, text, word) => text ?? words[word]);
  const secret = headers.some(([, text]) => typeof text !== 'string');
  const lines = [...(secret ? ['import os', ''] : []), 'import requests', '', 'response = requests.request('];
  lines.push(`    "${method}",`, `    ${JSON.stringify(url)},`);
  const lineOf = ([name, text]) => `        ${JSON.stringify(name)}: ${value(text)},`;
  if (headers.length) lines.push('    headers={', ...headers.map(lineOf), '    },');
  if (body !== undefined) lines.push(`    json=${indented(literal(body), '    ')},`);
  if (file) lines.push(`    files={"file": open("${file}", "rb")},`);
  if (raw) lines.push(`    data=open("${raw}", "rb"),`);
  lines.push('    timeout=30,', ')', 'response.raise_for_status()', 'print(response.text)');
  return lines.join('\n');
}

function go({ method, url, headers, body, file, raw }) {
  const value = (text) => (typeof text === 'string'
    ? JSON.stringify(text)
    : `${text.before ? `"${text.before}"+` : ''}os.Getenv("${text.variable}")`);
  const imports = new Set(['fmt', 'io', 'log', 'net/http']);
  if (headers.some(([, text]) => typeof text !== 'string') || file || raw) imports.add('os');
  const before = [];
  let content = 'nil';
  if (body !== undefined) {
    imports.add('strings');
    const text = json(body);
    before.push(`\tbody := strings.NewReader(${text.includes('`') ? JSON.stringify(text) : `\`${text}\``})`);
    content = 'body';
  } else if (file || raw) {
    before.push(`\tfile, err := os.Open("${file ?? raw}")`, '\tif err != nil {', '\t\tlog.Fatal(err)', '\t}', '\tdefer file.Close()');
    content = 'file';
  }
  if (file) {
    for (const name of ['bytes', 'mime/multipart']) imports.add(name);
    before.push('\tvar body bytes.Buffer', '\tform := multipart.NewWriter(&body)', `\tpart, err := form.CreateFormFile("file", "${file}")`,
      '\tif err != nil {', '\t\tlog.Fatal(err)', '\t}', '\tif _, err := io.Copy(part, file); err != nil {', '\t\tlog.Fatal(err)', '\t}',
      '\tform.Close()');
    content = '&body';
  }
  const check = ['\tif err != nil {', '\t\tlog.Fatal(err)', '\t}'];
  return [
    'package main', '', 'import (', ...[...imports].sort().map((name) => `\t"${name}"`), ')', '', 'func main() {', ...before,
    `\trequest, err := http.NewRequest("${method}", ${JSON.stringify(url)}, ${content})`, ...check,
    ...headers.map(([name, text]) => `\trequest.Header.Set(${JSON.stringify(name)}, ${value(text)})`),
    ...(file ? ['\trequest.Header.Set("Content-Type", form.FormDataContentType())'] : []),
    '\tresponse, err := http.DefaultClient.Do(request)', ...check, '\tdefer response.Body.Close()',
    '\tanswer, err := io.ReadAll(response.Body)', ...check, '\tfmt.Println(response.Status, string(answer))', '}',
  ].join('\n');
}
