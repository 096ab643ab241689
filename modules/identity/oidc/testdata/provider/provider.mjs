// An OpenID Connect provider for a test. It prints its issuer. A line on its standard input replaces its signing key.
//
//   node provider.mjs REDIRECT_URI
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

import { Provider } from 'oidc-provider';

const signingKey = () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256', kid: randomUUID() };
};

const configuration = (redirect) => ({
  clients: [{
    client_id: 'kontor',
    client_secret: 'a-secret-of-the-client',
    redirect_uris: [redirect],
    response_types: ['code'],
    grant_types: ['authorization_code'],
    id_token_signed_response_alg: 'ES256',
  }],
  jwks: { keys: [signingKey()] },
  cookies: { keys: ['only-for-tests'] },
  pkce: { required: () => true },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@bank.test`, email_verified: true, groups: id.split('-').slice(0, 1) }),
  }),
  features: { devInteractions: { enabled: true } },
});

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const restart = () => {
    server.removeAllListeners('request');
    server.on('request', new Provider(issuer, configuration(process.argv[2])).callback());
  };
  restart();
  console.log(issuer);
  createInterface({ input: process.stdin }).on('line', () => {
    restart();
    console.log('restarted');
  });
});
