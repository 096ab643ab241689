import type { Tokens } from './types.js';
/** What a program keeps to continue a session after a restart. It is secret. */
export interface TokenSet {
    accessToken?: string;
    /** Valid once. For 20 seconds, the service answers it again with the same tokens. */
    refreshToken?: string;
    /** When the access token ends, in milliseconds of this machine's clock. */
    expiresAt?: number;
    userId?: string;
    /** Sent with the next sign-in, so that failed attempts of others do not lock this device out. It outlives the session. */
    deviceToken?: string;
}
/** Keeps the tokens of a client. At most one refresh is under way at any time. */
export declare class Session {
    private readonly refresh;
    private readonly fixed;
    private current;
    private readonly onTokens;
    private renewAt;
    private flight;
    constructor(refresh: (refreshToken: string, signal: AbortSignal) => Promise<Tokens>, fixed: string | undefined, current: TokenSet, onTokens: ((tokens: TokenSet) => void | Promise<void>) | undefined);
    get tokens(): TokenSet;
    /** Returns a bearer token that is valid as far as the client can tell. */
    token(): Promise<string>;
    /** Returns a token other than the rejected one, or the same one if there is nothing to refresh with. */
    replace(rejected: string | undefined): Promise<string>;
    /** Exchanges the refresh token. It does not depend on the call that needs it: a cancelled call must not lose the new tokens. */
    private exchange;
    /** Sends the refresh token, again if the answer is lost. */
    private send;
    /** Uses new tokens from now on. */
    adopt(tokens: Tokens): Promise<void>;
    /** Removes the tokens of a session that has ended. */
    forget(): Promise<void>;
    /** Waits for the refresh under way. */
    settled(): Promise<void>;
    private use;
}
