import { UnexpectedAnswer } from './errors.js';
/** Selects the records without a value. */
export const isNull = 'null';
/** Returns a filter for any of the values, which may contain commas and quotation marks. In a text, * matches any text. */
export function is(...values) {
    return values.map((value) => quoted(String(value))).join(',');
}
function quoted(text) {
    return text === '' || text === 'null' || /[", \t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
/** Returns a filter for times from a first to a last one, both included. Undefined leaves an end open. */
export function between(first, last) {
    return `${first?.toISOString() ?? ''}..${last?.toISOString() ?? ''}`;
}
const pageSize = 100;
/** Returns the rows of all pages of a list with offsets. */
export async function* pages(query, request, rowsOf) {
    const limit = query.limit !== undefined && query.limit > 0 ? query.limit : pageSize;
    for (let offset = query.offset ?? 0;;) {
        const page = await request({ ...query, limit, offset });
        const rows = rowsOf(page);
        if (page.has_more && rows.length === 0)
            throw new UnexpectedAnswer('the list has more rows, but the page has none');
        yield* rows;
        if (!page.has_more)
            return;
        offset += rows.length;
    }
}
/** Returns the rows of all pages of a list with cursors. A page may be empty although there are more. */
export async function* cursors(query, request, rowsOf) {
    for (let next = query;;) {
        const page = await request(next);
        yield* rowsOf(page);
        if (!page.has_more)
            return;
        if (page.next === next.after)
            throw new UnexpectedAnswer('the page leads to itself');
        next = { ...next, after: page.next };
    }
}
/** Returns the rows of all pages of a list whose answers link to the next page. */
export async function* linked(query, options, request) {
    for (let next = query;;) {
        let link = null;
        const onAnswer = (headers, status) => {
            link = headers.get('Link');
            options.onAnswer?.(headers, status);
        };
        yield* await request(next, { ...options, onAnswer });
        const before = cursor(link);
        if (before === undefined)
            return;
        if (before === next.before)
            throw new UnexpectedAnswer('the page links to itself');
        next = { ...next, before };
    }
}
/** Returns the parameter `before` of the link to the next page. Only the parameter is used: an answer cannot send the client elsewhere. */
function cursor(link) {
    const target = /<([^>]*)>\s*;\s*rel="next"/.exec(link ?? '')?.[1];
    return target === undefined ? undefined : (new URL(target, 'https://kontor.invalid').searchParams.get('before') ?? undefined);
}
