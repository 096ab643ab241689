import { type CallOptions } from './call.js';
import { Operations } from './operations.js';
import { type TokenSet } from './session.js';
import type { Tokens } from './types.js';
export * from './errors.js';
export { between, is, isNull, type Filter } from './lists.js';
export { etagOf, type CallOptions } from './call.js';
export type { StreamOptions } from './stream.js';
export type { TokenSet } from './session.js';
export type * from './types.js';
export type * from './operations.js';
/** Options of a client. */
export interface KontorOptions {
    /** A fixed bearer token, such as that of a service account. There is no sign-in then, and no refresh. */
    token?: string;
    /** An API key, for the operations that require one. */
    apiKey?: string;
    /** Continues a session with tokens that `onTokens` has reported. */
    tokens?: TokenSet;
    /** Gets the tokens after each sign-in, refresh and sign-out. The new tokens are used after it has ended. It must not call the client. */
    onTokens?: (tokens: TokenSet) => void | Promise<void>;
    /** An id of this device, at most 128 characters. */
    device?: string;
    /** The language of texts: en, de, fr or it. */
    language?: string;
    /** Instead of the global fetch. */
    fetch?: typeof fetch;
    /** Bounds each attempt, including the answer, in milliseconds: 30,000 by default. An attempt that takes longer is not repeated. */
    timeout?: number;
    /** How often a request may be repeated: twice by default. */
    retries?: number;
    /** The pause before the first repetition, which doubles each time, in milliseconds: 500 by default. */
    firstWait?: number;
    /** The longest pause, in milliseconds: 30,000 by default. A request whose Retry-After is longer is not repeated. */
    maxWait?: number;
    /** Bounds an answer and an event of a stream, in bytes: 32 MiB by default. */
    maxAnswer?: number;
    /** Reconnects a stream that was silent for this time, in milliseconds: 90,000 by default. */
    streamIdle?: number;
}
/** A client of one service, for one caller. All operations of the API are methods in groups: customers.create is `customers.create`. */
export declare class Kontor extends Operations {
    private readonly session;
    private readonly fixed;
    /** @param address of the service, such as https://bank.example */
    constructor(address: string, options?: KontorOptions);
    /** The present tokens, which are secret. A refresh replaces them. */
    get tokens(): TokenSet;
    /**
     * Opens a session with a password. The user is an e-mail address, a phone number, a user name or an id.
     *
     * @throws {SecondFactorRequired} if the user has a second factor; its methods complete the sign-in
     */
    signIn(user: string, password: string, options?: CallOptions): Promise<void>;
    /** Continues with tokens of another way to sign in, such as oidc.exchange. */
    use(tokens: Tokens): Promise<void>;
    /** Ends the session. Without one it does nothing. */
    signOut(options?: CallOptions): Promise<void>;
}
