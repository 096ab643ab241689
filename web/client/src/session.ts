import { ConnectionFailed, KontorError, NotSignedIn, TimedOut } from './errors.js';
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

/** How long before its end an access token is refreshed, in milliseconds; at most a tenth of its life. */
const refreshEarly = 30_000;

/** How long one attempt of a refresh may take, and the pauses before further ones, in milliseconds. All end within the 20 seconds in which
 * the service repeats a lost answer. */
const refreshTimeout = 5_000;
const refreshPauses = [250, 1_000];

/** Keeps the tokens of a client. At most one refresh is under way at any time. */
export class Session {
  private renewAt: number;
  private flight: Promise<void> | undefined;

  constructor(
    private readonly refresh: (refreshToken: string, signal: AbortSignal) => Promise<Tokens>,
    private readonly fixed: string | undefined,
    private current: TokenSet,
    private readonly onTokens: ((tokens: TokenSet) => void | Promise<void>) | undefined,
  ) {
    this.renewAt = (current.expiresAt ?? 0) - refreshEarly;
  }

  get tokens(): TokenSet {
    return { ...this.current };
  }

  /** Returns a bearer token that is valid as far as the client can tell. */
  async token(): Promise<string> {
    if (this.fixed !== undefined) return this.fixed;
    const { accessToken, refreshToken, expiresAt } = this.current;
    if (refreshToken !== undefined && Date.now() >= this.renewAt) {
      try {
        return await this.replace(accessToken);
      } catch (error) {
        // The token is still valid for a moment, and the next call tries again.
        if (error instanceof NotSignedIn || accessToken === undefined || Date.now() >= (expiresAt ?? 0)) throw error;
      }
    }
    if (accessToken === undefined) throw new NotSignedIn('sign in first');
    return accessToken;
  }

  /** Returns a token other than the rejected one, or the same one if there is nothing to refresh with. */
  async replace(rejected: string | undefined): Promise<string> {
    if (this.fixed !== undefined) return this.fixed;
    if (this.current.accessToken === rejected && (this.flight !== undefined || this.current.refreshToken !== undefined)) {
      this.flight ??= this.exchange(this.current.refreshToken!).finally(() => (this.flight = undefined));
      await this.flight;
    }
    if (this.current.accessToken === undefined) throw new NotSignedIn('sign in first');
    return this.current.accessToken;
  }

  /** Exchanges the refresh token. It does not depend on the call that needs it: a cancelled call must not lose the new tokens. */
  private async exchange(old: string): Promise<void> {
    try {
      const fresh = await this.send(old);
      if (this.current.refreshToken === old) await this.adopt(fresh);
    } catch (error) {
      if (!(error instanceof KontorError) || error.code !== 'auth_m.invalid_refresh_token') throw error;
      if (this.current.refreshToken === old) await this.forget();
      throw new NotSignedIn('the session has ended', { cause: error });
    }
  }

  /** Sends the refresh token, again if the answer is lost. */
  private async send(token: string): Promise<Tokens> {
    for (const pause of refreshPauses) {
      try {
        return await this.refresh(token, AbortSignal.timeout(refreshTimeout));
      } catch (error) {
        if (!isLost(error)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return this.refresh(token, AbortSignal.timeout(refreshTimeout));
  }

  /** Uses new tokens from now on. */
  async adopt(tokens: Tokens): Promise<void> {
    const life = tokens.expires_in * 1000;
    const expiresAt = Date.now() + life;
    const next: TokenSet = { accessToken: tokens.access_token, expiresAt, userId: tokens.user_id };
    if (tokens.refresh_token !== undefined) next.refreshToken = tokens.refresh_token;
    const deviceToken = tokens.device_token ?? this.current.deviceToken;
    if (deviceToken !== undefined) next.deviceToken = deviceToken;
    await this.use(next, expiresAt - Math.min(refreshEarly, life / 10));
  }

  /** Removes the tokens of a session that has ended. */
  async forget(): Promise<void> {
    const { deviceToken } = this.current;
    await this.use(deviceToken === undefined ? {} : { deviceToken }, 0);
  }

  /** Waits for the refresh under way. */
  async settled(): Promise<void> {
    await this.flight?.catch(() => undefined); // The calls that wait for it report the error.
  }

  private async use(next: TokenSet, renewAt: number): Promise<void> {
    await this.onTokens?.({ ...next });
    this.current = next;
    this.renewAt = renewAt;
  }
}

/** Reports whether the service may have answered a request although no answer has arrived. */
function isLost(error: unknown): boolean {
  if (error instanceof KontorError) return error.code === 'common.outcome_unknown' || (error.code === undefined && [502, 503, 504].includes(error.status));
  return error instanceof ConnectionFailed || error instanceof TimedOut || (error instanceof Error && error.name === 'TimeoutError');
}
