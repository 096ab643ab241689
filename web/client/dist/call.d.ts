import type { Session } from './session.js';
/** Options of one call. */
export interface CallOptions {
    signal?: AbortSignal;
    /** Changes a record only if it still is this version: an ETag, or a record of {@link etagOf}. */
    ifMatch?: string | object;
    /** Throws {@link NotModified} if the record still is this version. */
    ifNoneMatch?: string | object;
    /** The key with which a creation can be repeated within 24 hours. By default each call has a random one. */
    idempotencyKey?: string;
    language?: string;
    requestId?: string;
    /** Gets the headers and the status of the answer. */
    onAnswer?: (headers: Headers, status: number) => void;
}
/** What the API document says about an operation. */
export interface Operation {
    name: string;
    method: string;
    path: string;
    bearer?: boolean;
    apiKey?: boolean;
    form?: boolean;
    keyed?: boolean;
    device?: boolean;
    accept?: string;
}
/** What one call sends. */
export interface Given {
    input?: object;
    query?: object;
}
/** Settings of a connection; the constructor of Kontor documents them. */
export interface Config {
    base: string;
    apiKey: string | undefined;
    device: string | undefined;
    language: string | undefined;
    fetch: typeof fetch;
    timeout: number;
    retries: number;
    firstWait: number;
    maxWait: number;
    maxAnswer: number;
    streamIdle: number;
}
/** An answer whose body is still to be read. */
export interface Attempt {
    response: Response;
    /** Ends the time limit: streams have none after the head. */
    settle: () => void;
    /** Frees the connection. It must be called. Reading the body afterwards throws the reason. */
    end: (reason: Error) => void;
}
/** Returns the ETag of a record that the client has returned by itself. Rows of lists have none: get the record first. */
export declare function etagOf(record: string | object): string;
/** Returns a value as one segment of a path. */
export declare function segment(value: string): string;
/** A group of operations. */
export declare class Group {
    protected readonly connection: Connection;
    constructor(connection: Connection);
}
/** Sends calls to a service. */
export declare class Connection {
    readonly config: Config;
    session: Session;
    constructor(config: Config);
    json<T>(op: Operation, given: Given, options: CallOptions): Promise<T>;
    either<A, B>(op: Operation, given: Given, options: CallOptions): Promise<{
        status: 200;
        data: A;
    } | {
        status: 202;
        data: B;
    }>;
    text(op: Operation, given: Given, options: CallOptions): Promise<string>;
    blob(op: Operation, given: Given, options: CallOptions): Promise<Blob>;
    /** Returns the address to which an operation redirects. Browsers do not show it: open the operation as a page there. */
    location(op: Operation, given: Given, options: CallOptions): Promise<string>;
    private decoded;
    /** Performs a call with all its attempts and reads the answer. */
    private send;
    /** Sends a call until it succeeds, cannot be repeated, or has been repeated often enough. */
    private perform;
    /** Sends a call with the present access token. If the service rejects it, refreshes it and sends the call once more. */
    authorized(call: Call): Promise<Attempt>;
    private deviceHeaders;
    /** Sends a call once. Errors of the service are thrown. */
    private attempt;
}
/** A call that is ready to be sent, several times if necessary. */
export interface Call {
    op: Operation;
    url: string;
    headers: Record<string, string>;
    body: string | FormData | undefined;
    signal: AbortSignal | undefined;
}
/** Encodes a call. */
export declare function prepare(config: Config, op: Operation, given: Given, options: CallOptions): Call;
/** Returns the error that describes a failed connection. */
export declare function failure(call: Call, signal: AbortSignal, cause: unknown): unknown;
/** Returns the media type of an answer without parameters. */
export declare function mediaType(headers: Headers): string;
/** Returns between half of a pause and all of it, so that many clients do not return at the same time. */
export declare function jitter(pause: number): number;
/** Waits, or throws the reason of the signal. */
export declare function sleep(pause: number, signal: AbortSignal | undefined): Promise<void>;
/** Waits for a promise, or throws the reason of the signal. */
export declare function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T>;
