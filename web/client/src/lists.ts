import { UnexpectedAnswer } from './errors.js';
import type { CallOptions } from './call.js';

/**
 * The value of a search, as the service reads it: values separated by commas, patterns with *, ranges such as "2026-01-01..".
 * {@link is} makes one of plain values.
 */
export type Filter = string;

/** Selects the records without a value. */
export const isNull: Filter = 'null';

/** Returns a filter for any of the values, which may contain commas and quotation marks. In a text, * matches any text. */
export function is(...values: (string | number | boolean)[]): Filter {
  return values.map((value) => quoted(String(value))).join(',');
}

function quoted(text: string): string {
  return text === '' || text === 'null' || /[", \t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns a filter for times from a first to a last one, both included. Undefined leaves an end open. */
export function between(first?: Date, last?: Date): Filter {
  return `${first?.toISOString() ?? ''}..${last?.toISOString() ?? ''}`;
}

const pageSize = 100;

/** Returns the rows of all pages of a list with offsets. */
export async function* pages<Q extends { limit?: number; offset?: number }, P extends { has_more: boolean }, R>(
  query: Q,
  request: (next: Q) => Promise<P>,
  rowsOf: (page: P) => R[],
): AsyncGenerator<R, void, undefined> {
  const limit = query.limit !== undefined && query.limit > 0 ? query.limit : pageSize;
  for (let offset = query.offset ?? 0; ; ) {
    const page = await request({ ...query, limit, offset });
    const rows = rowsOf(page);
    if (page.has_more && rows.length === 0) throw new UnexpectedAnswer('the list has more rows, but the page has none');
    yield* rows;
    if (!page.has_more) return;
    offset += rows.length;
  }
}

/** Returns the rows of all pages of a list with cursors. A page may be empty although there are more. */
export async function* cursors<Q extends { after?: string }, P extends { has_more: boolean; next: string }, R>(
  query: Q,
  request: (next: Q) => Promise<P>,
  rowsOf: (page: P) => R[],
): AsyncGenerator<R, void, undefined> {
  for (let next = query; ; ) {
    const page = await request(next);
    yield* rowsOf(page);
    if (!page.has_more) return;
    if (page.next === next.after) throw new UnexpectedAnswer('the page leads to itself');
    next = { ...next, after: page.next };
  }
}

/** Returns the rows of all pages of a list whose answers link to the next page. */
export async function* linked<Q extends { before?: string }, R>(
  query: Q,
  options: CallOptions,
  request: (next: Q, options: CallOptions) => Promise<R[]>,
): AsyncGenerator<R, void, undefined> {
  for (let next = query; ; ) {
    let link: string | null = null;
    const onAnswer = (headers: Headers, status: number): void => {
      link = headers.get('Link');
      options.onAnswer?.(headers, status);
    };
    yield* await request(next, { ...options, onAnswer });
    const before = cursor(link);
    if (before === undefined) return;
    if (before === next.before) throw new UnexpectedAnswer('the page links to itself');
    next = { ...next, before };
  }
}

/** Returns the parameter `before` of the link to the next page. Only the parameter is used: an answer cannot send the client elsewhere. */
function cursor(link: string | null): string | undefined {
  const target = /<([^>]*)>\s*;\s*rel="next"/.exec(link ?? '')?.[1];
  return target === undefined ? undefined : (new URL(target, 'https://kontor.invalid').searchParams.get('before') ?? undefined);
}
