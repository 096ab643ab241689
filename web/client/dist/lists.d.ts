import type { CallOptions } from './call.js';
/**
 * The value of a search, as the service reads it: values separated by commas, patterns with *, ranges such as "2026-01-01..".
 * {@link is} makes one of plain values.
 */
export type Filter = string;
/** Selects the records without a value. */
export declare const isNull: Filter;
/** Returns a filter for any of the values, which may contain commas and quotation marks. In a text, * matches any text. */
export declare function is(...values: (string | number | boolean)[]): Filter;
/** Returns a filter for times from a first to a last one, both included. Undefined leaves an end open. */
export declare function between(first?: Date, last?: Date): Filter;
/** Returns the rows of all pages of a list with offsets. */
export declare function pages<Q extends {
    limit?: number;
    offset?: number;
}, P extends {
    has_more: boolean;
}, R>(query: Q, request: (next: Q) => Promise<P>, rowsOf: (page: P) => R[]): AsyncGenerator<R, void, undefined>;
/** Returns the rows of all pages of a list with cursors. A page may be empty although there are more. */
export declare function cursors<Q extends {
    after?: string;
}, P extends {
    has_more: boolean;
    next: string;
}, R>(query: Q, request: (next: Q) => Promise<P>, rowsOf: (page: P) => R[]): AsyncGenerator<R, void, undefined>;
/** Returns the rows of all pages of a list whose answers link to the next page. */
export declare function linked<Q extends {
    before?: string;
}, R>(query: Q, options: CallOptions, request: (next: Q, options: CallOptions) => Promise<R[]>): AsyncGenerator<R, void, undefined>;
