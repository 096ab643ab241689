import { ConnectionFailed, KontorError, NotSignedIn, TimedOut } from './errors.js';
/** How long before its end an access token is refreshed, in milliseconds; at most a tenth of its life. */
const refreshEarly = 30_000;
/** How long one attempt of a refresh may take, and the pauses before further ones, in milliseconds. All end within the 20 seconds in which
 * the service repeats a lost answer. */
const refreshTimeout = 5_000;
const refreshPauses = [250, 1_000];
/** Keeps the tokens of a client. At most one refresh is under way at any time. */
export class Session {
    refresh;
    fixed;
    current;
    onTokens;
    renewAt;
    flight;
    constructor(refresh, fixed, current, onTokens) {
        this.refresh = refresh;
        this.fixed = fixed;
        this.current = current;
        this.onTokens = onTokens;
        this.renewAt = (current.expiresAt ?? 0) - refreshEarly;
    }
    get tokens() {
        return { ...this.current };
    }
    /** Returns a bearer token that is valid as far as the client can tell. */
    async token() {
        if (this.fixed !== undefined)
            return this.fixed;
        const { accessToken, refreshToken, expiresAt } = this.current;
        if (refreshToken !== undefined && Date.now() >= this.renewAt) {
            try {
                return await this.replace(accessToken);
            }
            catch (error) {
                // The token is still valid for a moment, and the next call tries again.
                if (error instanceof NotSignedIn || accessToken === undefined || Date.now() >= (expiresAt ?? 0))
                    throw error;
            }
        }
        if (accessToken === undefined)
            throw new NotSignedIn('sign in first');
        return accessToken;
    }
    /** Returns a token other than the rejected one, or the same one if there is nothing to refresh with. */
    async replace(rejected) {
        if (this.fixed !== undefined)
            return this.fixed;
        if (this.current.accessToken === rejected && (this.flight !== undefined || this.current.refreshToken !== undefined)) {
            this.flight ??= this.exchange(this.current.refreshToken).finally(() => (this.flight = undefined));
            await this.flight;
        }
        if (this.current.accessToken === undefined)
            throw new NotSignedIn('sign in first');
        return this.current.accessToken;
    }
    /** Exchanges the refresh token. It does not depend on the call that needs it: a cancelled call must not lose the new tokens. */
    async exchange(old) {
        try {
            const fresh = await this.send(old);
            if (this.current.refreshToken === old)
                await this.adopt(fresh);
        }
        catch (error) {
            if (!(error instanceof KontorError) || error.code !== 'auth_m.invalid_refresh_token')
                throw error;
            if (this.current.refreshToken === old)
                await this.forget();
            throw new NotSignedIn('the session has ended', { cause: error });
        }
    }
    /** Sends the refresh token, again if the answer is lost. */
    async send(token) {
        for (const pause of refreshPauses) {
            try {
                return await this.refresh(token, AbortSignal.timeout(refreshTimeout));
            }
            catch (error) {
                if (!isLost(error))
                    throw error;
            }
            await new Promise((resolve) => setTimeout(resolve, pause));
        }
        return this.refresh(token, AbortSignal.timeout(refreshTimeout));
    }
    /** Uses new tokens from now on. */
    async adopt(tokens) {
        const life = tokens.expires_in * 1000;
        const expiresAt = Date.now() + life;
        const next = { accessToken: tokens.access_token, expiresAt, userId: tokens.user_id };
        if (tokens.refresh_token !== undefined)
            next.refreshToken = tokens.refresh_token;
        const deviceToken = tokens.device_token ?? this.current.deviceToken;
        if (deviceToken !== undefined)
            next.deviceToken = deviceToken;
        await this.use(next, expiresAt - Math.min(refreshEarly, life / 10));
    }
    /** Removes the tokens of a session that has ended. */
    async forget() {
        const { deviceToken } = this.current;
        await this.use(deviceToken === undefined ? {} : { deviceToken }, 0);
    }
    /** Waits for the refresh under way. */
    async settled() {
        await this.flight?.catch(() => undefined); // The calls that wait for it report the error.
    }
    async use(next, renewAt) {
        await this.onTokens?.({ ...next });
        this.current = next;
        this.renewAt = renewAt;
    }
}
/** Reports whether the service may have answered a request although no answer has arrived. */
function isLost(error) {
    if (error instanceof KontorError)
        return error.code === 'common.outcome_unknown' || (error.code === undefined && [502, 503, 504].includes(error.status));
    return error instanceof ConnectionFailed || error instanceof TimedOut || (error instanceof Error && error.name === 'TimeoutError');
}
