import { Connection } from './call.js';
import { KontorError, SecondFactorRequired } from './errors.js';
import { Operations } from './operations.js';
import { Session } from './session.js';
export * from './errors.js';
export { between, is, isNull } from './lists.js';
export { etagOf } from './call.js';
/** A client of one service, for one caller. All operations of the API are methods in groups: customers.create is `customers.create`. */
export class Kontor extends Operations {
    session;
    fixed;
    /** @param address of the service, such as https://bank.example */
    constructor(address, options = {}) {
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
    get tokens() {
        return this.session.tokens;
    }
    /**
     * Opens a session with a password. The user is an e-mail address, a phone number, a user name or an id.
     *
     * @throws {SecondFactorRequired} if the user has a second factor; its methods complete the sign-in
     */
    async signIn(user, password, options = {}) {
        const answer = await this.auth.signIn({ user_id: user, password }, options);
        if (answer.status === 202) {
            throw new SecondFactorRequired(answer.data, async (input) => this.use(await this.auth.signInFactor(input)));
        }
        await this.use(answer.data);
    }
    /** Continues with tokens of another way to sign in, such as oidc.exchange. */
    async use(tokens) {
        if (this.fixed)
            throw new TypeError('the client has a fixed token');
        await this.session.settled();
        await this.session.adopt(tokens);
    }
    /** Ends the session. Without one it does nothing. */
    async signOut(options = {}) {
        await this.session.settled();
        if (this.session.tokens.accessToken === undefined)
            return;
        try {
            await this.auth.logout(options);
        }
        catch (error) {
            const ended = error.name === 'NotSignedIn' || (error instanceof KontorError && error.code === 'common.unauthorized');
            if (!ended)
                throw error;
        }
        await this.session.forget();
    }
}
