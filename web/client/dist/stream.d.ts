import { type CallOptions, type Connection, type Given, type Operation } from './call.js';
/** Options of an event stream. */
export interface StreamOptions extends CallOptions {
    /** Continues after the frame with this id. */
    after?: string;
}
/**
 * Reads an event stream, and reconnects after the last frame until the signal is aborted, the loop is left, or the service
 * rejects the caller.
 */
export declare function follow<F extends {
    event: string;
    id: string;
    data: unknown;
}>(connection: Connection, op: Operation, given: Given, options: StreamOptions): AsyncGenerator<F, void, undefined>;
