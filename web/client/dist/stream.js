import { jitter, mediaType, prepare, sleep } from './call.js';
import { KontorError, NotSignedIn, UnexpectedAnswer } from './errors.js';
import { EventReader } from './events.js';
/**
 * Reads an event stream, and reconnects after the last frame until the signal is aborted, the loop is left, or the service
 * rejects the caller.
 */
export async function* follow(connection, op, given, options) {
    const { config } = connection;
    const call = prepare(config, op, given, options);
    if (options.after !== undefined)
        call.headers['Last-Event-ID'] = options.after;
    let wait = config.firstWait;
    for (;;) {
        try {
            for await (const event of events(connection, call)) {
                wait = event.retry ?? config.firstWait;
                yield { event: event.name, id: event.id, data: decoded(op, event) };
                if (event.id !== '')
                    call.headers['Last-Event-ID'] = event.id;
                else if (event.name === 'reset')
                    delete call.headers['Last-Event-ID'];
            }
        }
        catch (error) {
            options.signal?.throwIfAborted();
            if (final(error))
                throw error;
            if (error instanceof KontorError)
                wait = Math.max(wait, error.retryAfter);
        }
        wait = Math.min(wait, config.maxWait);
        await sleep(jitter(wait), options.signal);
        wait *= 2;
    }
}
/** Reads the events of one connection. */
async function* events(connection, call) {
    const { streamIdle, maxAnswer } = connection.config;
    const { response, settle, end } = await connection.authorized(call);
    settle(); // From here on, the time without any byte counts.
    let idle;
    const awake = () => {
        clearTimeout(idle);
        idle = setTimeout(() => end(new Error('the stream was silent for too long')), streamIdle);
    };
    try {
        if (mediaType(response.headers) !== 'text/event-stream' || response.body === null) {
            throw new UnexpectedAnswer(`${call.op.name}: the media type is "${mediaType(response.headers)}", not text/event-stream`);
        }
        const source = response.body.getReader();
        const reader = new EventReader(maxAnswer);
        for (awake();; awake()) {
            const part = await source.read();
            if (part.done)
                return;
            yield* reader.read(part.value);
        }
    }
    finally {
        clearTimeout(idle);
        end(new Error('the stream has been left'));
    }
}
function decoded(op, event) {
    try {
        return JSON.parse(event.data);
    }
    catch (cause) {
        throw new UnexpectedAnswer(`${op.name}: the frame ${event.name} is broken`, { cause });
    }
}
/** Reports whether a further connection would fail in the same way. */
function final(error) {
    if (error instanceof KontorError)
        return error.status < 500 && error.status !== 429 && error.status !== 408;
    return error instanceof UnexpectedAnswer || error instanceof NotSignedIn;
}
