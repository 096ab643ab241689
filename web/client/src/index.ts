import { Connection, type CallOptions } from './call.js';
import { KontorError, SecondFactorRequired } from './errors.js';
import { Operations } from './operations.js';
import { Session, type TokenSet } from './session.js';
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
export class Kontor extends Operations {
  private readonly session: Session;
  private readonly fixed: boolean;

  /** @param address of the service, such as https://bank.example */
  constructor(address: string, options: KontorOptions = {}) {
    const url = new URL(address);
    if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
      throw new TypeError('the address of the service must be like https://bank.example, without a user, a query or a fragment');
    }
    const connection = new Connection({
      base: url.origin + url.pathname.replace(/\/+$/, ''),
      apiKey: options.apiKey,
      device: options.device,
      language: options.language,
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      timeout: options.timeout ?? 30_000,
      retries: options.retries ?? 2,
      firstWait: options.firstWait ?? 500,
      maxWait: options.maxWait ?? 30_000,
      maxAnswer: options.maxAnswer ?? 32 * 1024 * 1024,
      streamIdle: options.streamIdle ?? 90_000,
    });
    super(connection);
    this.fixed = options.token !== undefined;
    this.session = new Session((token, signal) => this.auth.refresh({ refresh_token: token }, { signal }), options.token, options.tokens ?? {}, options.onTokens);
    connection.session = this.session;
  }

  /** The present tokens, which are secret. A refresh replaces them. */
  get tokens(): TokenSet {
    return this.session.tokens;
  }

  /**
   * Opens a session with a password. The user is an e-mail address, a phone number, a user name or an id.
   *
   * @throws {SecondFactorRequired} if the user has a second factor; its methods complete the sign-in
   */
  async signIn(user: string, password: string, options: CallOptions = {}): Promise<void> {
    const answer = await this.auth.signIn({ user_id: user, password }, options);
    if (answer.status === 202) {
      throw new SecondFactorRequired(answer.data, async (input) => this.use(await this.auth.signInFactor(input)));
    }
    await this.use(answer.data);
  }

  /** Continues with tokens of another way to sign in, such as oidc.exchange. */
  async use(tokens: Tokens): Promise<void> {
    if (this.fixed) throw new TypeError('the client has a fixed token');
    await this.session.settled();
    await this.session.adopt(tokens);
  }

  /** Ends the session. Without one it does nothing. */
  async signOut(options: CallOptions = {}): Promise<void> {
    await this.session.settled();
    if (this.session.tokens.accessToken === undefined) return;
    try {
      await this.auth.logout(options);
    } catch (error) {
      const ended = (error as Error).name === 'NotSignedIn' || (error instanceof KontorError && error.code === 'common.unauthorized');
      if (!ended) throw error;
    }
    await this.session.forget();
  }
}
