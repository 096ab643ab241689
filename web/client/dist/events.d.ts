/** One event of a stream (HTML Living Standard, "Server-sent events"). */
export interface StreamEvent {
    id: string;
    name: string;
    data: string;
    /** The milliseconds that the service demands before the next connection. */
    retry: number | undefined;
}
/** Splits the bytes of a stream into events. An event that is cut off is dropped: it comes again after the reconnection. */
export declare class EventReader {
    private readonly limit;
    private readonly decoder;
    private rest;
    private size;
    private retry;
    private event;
    /** @param limit the longest event, in characters */
    constructor(limit: number);
    read(bytes: Uint8Array): Generator<StreamEvent, void, undefined>;
    private add;
}
