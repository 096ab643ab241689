import type { ErrorClass, ErrorCode, NextStep, SignInFactorInput } from './types.js';
/** An error that the service returned. */
export declare class KontorError extends Error {
    readonly name: string;
    /** Of HTTP. */
    readonly status: number;
    /** Undefined if the answer is not one of Kontor, but of a proxy, for example. */
    readonly code: ErrorCode | undefined;
    readonly class: ErrorClass | undefined;
    /** Whether the same request may succeed later. */
    readonly retryable: boolean;
    /** A sentence for each wrong field. */
    readonly fields: Record<string, string>;
    /** All details, including the fields. */
    readonly details: Record<string, unknown>;
    /** The id of the request, which is also in the log of the service. */
    readonly requestId: string | undefined;
    /** Milliseconds to wait before the next attempt; 0 if unknown. */
    readonly retryAfter: number;
    /** Such as customers.create. */
    readonly operation: string;
    /** Whether the service is about to end and has not looked at the request. */
    readonly shutdown: boolean;
    constructor(operation: string, status: number, headers: Headers, body: unknown);
}
/** Returns the pause of either form of the header, in milliseconds. */
export declare function retryAfter(value: string | null, now: number): number;
/** The record still is the version of `ifNoneMatch`. */
export declare class NotModified extends Error {
    readonly name = "NotModified";
}
/** An operation needs a session or an API key, and the client has none, or the session has ended. */
export declare class NotSignedIn extends Error {
    readonly name = "NotSignedIn";
}
/** An answer is not one of this API: a redirect, another media type, broken JSON, or too large. */
export declare class UnexpectedAnswer extends Error {
    readonly name = "UnexpectedAnswer";
}
/** An attempt took longer than the option `timeout`. */
export declare class TimedOut extends Error {
    readonly name = "TimedOut";
}
/** The connection failed. The request may have arrived. */
export declare class ConnectionFailed extends Error {
    readonly name = "ConnectionFailed";
}
/** The user has a second factor. One of the methods completes the sign-in, within a few minutes and at most five attempts. */
export declare class SecondFactorRequired extends Error {
    readonly step: NextStep;
    private readonly complete;
    readonly name = "SecondFactorRequired";
    constructor(step: NextStep, complete: (input: SignInFactorInput) => Promise<void>);
    /** Completes the sign-in with the code of an authenticator app. */
    code(code: string): Promise<void>;
    /** Completes the sign-in with one of the user's recovery codes. */
    recoveryCode(code: string): Promise<void>;
    /** Completes the sign-in with what navigator.credentials.get returned for the options in `step.passkey`. */
    passkey(answer: {
        [name: string]: unknown;
    }): Promise<void>;
}
