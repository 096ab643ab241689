/** An error that the service returned. */
export class KontorError extends Error {
    name = 'KontorError';
    /** Of HTTP. */
    status;
    /** Undefined if the answer is not one of Kontor, but of a proxy, for example. */
    code;
    class;
    /** Whether the same request may succeed later. */
    retryable;
    /** A sentence for each wrong field. */
    fields;
    /** All details, including the fields. */
    details;
    /** The id of the request, which is also in the log of the service. */
    requestId;
    /** Milliseconds to wait before the next attempt; 0 if unknown. */
    retryAfter;
    /** Such as customers.create. */
    operation;
    /** Whether the service is about to end and has not looked at the request. */
    shutdown;
    constructor(operation, status, headers, body) {
        const given = isObject(body) && typeof body.message === 'string' ? body : {};
        super(`${operation}: ${status} ${typeof given.code === 'string' ? `${given.code}: ` : ''}${given.message ?? 'the answer is not one of Kontor'}`);
        this.operation = operation;
        this.status = status;
        this.code = typeof given.code === 'string' ? given.code : undefined;
        this.class = given.class;
        this.shutdown = status === 503 && given.overall_status !== undefined;
        this.retryable = given.retryable === true || this.shutdown;
        this.details = isObject(given.details) ? given.details : {};
        this.fields = Object.fromEntries(Object.entries(this.details).filter((entry) => typeof entry[1] === 'string'));
        this.requestId = headers.get('X-Request-ID') ?? undefined;
        this.retryAfter = retryAfter(headers.get('Retry-After'), Date.now());
    }
}
function isObject(value) {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}
/** Returns the pause of either form of the header, in milliseconds. */
export function retryAfter(value, now) {
    if (value === null || value === '')
        return 0;
    const pause = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
    return pause > 0 ? pause : 0;
}
/** The record still is the version of `ifNoneMatch`. */
export class NotModified extends Error {
    name = 'NotModified';
}
/** An operation needs a session or an API key, and the client has none, or the session has ended. */
export class NotSignedIn extends Error {
    name = 'NotSignedIn';
}
/** An answer is not one of this API: a redirect, another media type, broken JSON, or too large. */
export class UnexpectedAnswer extends Error {
    name = 'UnexpectedAnswer';
}
/** An attempt took longer than the option `timeout`. */
export class TimedOut extends Error {
    name = 'TimedOut';
}
/** The connection failed. The request may have arrived. */
export class ConnectionFailed extends Error {
    name = 'ConnectionFailed';
}
/** The user has a second factor. One of the methods completes the sign-in, within a few minutes and at most five attempts. */
export class SecondFactorRequired extends Error {
    step;
    complete;
    name = 'SecondFactorRequired';
    constructor(step, complete) {
        super(`the sign-in needs a second factor: ${step.methods.join(', ')}`);
        this.step = step;
        this.complete = complete;
    }
    /** Completes the sign-in with the code of an authenticator app. */
    code(code) {
        return this.complete({ token: this.step.token, code });
    }
    /** Completes the sign-in with one of the user's recovery codes. */
    recoveryCode(code) {
        return this.complete({ token: this.step.token, recovery_code: code });
    }
    /** Completes the sign-in with what navigator.credentials.get returned for the options in `step.passkey`. */
    passkey(answer) {
        return this.complete({ token: this.step.token, passkey: answer });
    }
}
