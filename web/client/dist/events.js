import { UnexpectedAnswer } from './errors.js';
/** Splits the bytes of a stream into events. An event that is cut off is dropped: it comes again after the reconnection. */
export class EventReader {
    limit;
    decoder = new TextDecoder();
    rest = '';
    size = 0;
    retry;
    event = blank();
    /** @param limit the longest event, in characters */
    constructor(limit) {
        this.limit = limit;
    }
    *read(bytes) {
        const text = this.rest + this.decoder.decode(bytes, { stream: true });
        const ends = /\r\n|\n|\r(?!$)/g;
        ends.lastIndex = Math.max(0, this.rest.length - 1); // The rest has no end of a line, except a CR at its end.
        let start = 0;
        for (const end of text.matchAll(ends)) {
            const line = text.slice(start, end.index);
            start = end.index + end[0].length;
            this.size += line.length;
            if (this.size > this.limit)
                break;
            if (line !== '') {
                this.add(line);
                continue;
            }
            this.size = 0;
            if (this.event.data !== undefined)
                yield { id: this.event.id, name: this.event.name, data: this.event.data, retry: this.retry };
            this.event = blank();
        }
        this.rest = text.slice(start);
        if (this.size + this.rest.length > this.limit)
            throw new UnexpectedAnswer(`an event of the stream is larger than ${this.limit} characters`);
    }
    add(line) {
        const colon = line.indexOf(':');
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
        if (name === 'data')
            this.event.data = this.event.data === undefined ? value : `${this.event.data}\n${value}`;
        else if (name === 'event')
            this.event.name = value;
        else if (name === 'id' && !value.includes('\0'))
            this.event.id = value;
        else if (name === 'retry' && /^\d{1,9}$/.test(value))
            this.retry = Number(value);
    }
}
function blank() {
    return { id: '', name: 'message', data: undefined };
}
