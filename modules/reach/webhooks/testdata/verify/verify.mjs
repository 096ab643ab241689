// A receiver that verifies calls with the two libraries. It prints its address, and one line of JSON for each call. The path of a
// call is the secret to verify it with.
import { createServer } from 'node:http';
import { Webhook as Standard } from 'standardwebhooks';
import { Webhook as Svix } from 'svix';

const verdict = (Library, secret, body, headers) => {
  try {
    new Library(secret).verify(body, headers); // svix returns nothing
    const event = JSON.parse(body);
    return { type: event.type, id: event.data.id };
  } catch (error) {
    return { error: error.message };
  }
};

const server = createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts).toString();
    const secret = decodeURIComponent(request.url.slice(1));
    const standard = verdict(Standard, secret, body, request.headers);
    const svix = verdict(Svix, secret, body, request.headers);
    const changed = verdict(Standard, secret, body.replace('created', 'deleted'), request.headers);
    console.log(JSON.stringify({ standard, svix, changed, id: request.headers['webhook-id'] }));
    response.writeHead(204).end();
  });
});

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
