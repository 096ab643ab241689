// Creates a customer and lists all customers of its name.
import { etagOf, is, Kontor, KontorError, SecondFactorRequired } from 'kontor-client';

const { KONTOR_URL, KONTOR_USER, KONTOR_PASSWORD, KONTOR_CODE } = process.env as Record<string, string>;

const kontor = new Kontor(KONTOR_URL!);
try {
  await kontor.signIn(KONTOR_USER!, KONTOR_PASSWORD!);
} catch (error) {
  if (!(error instanceof SecondFactorRequired)) throw error;
  await error.code(KONTOR_CODE!);
}
try {
  const created = await kontor.customers.create({ first_name: 'Anna', last_name: 'Keller, Söhne', email: 'anna@example.ch' });
  await kontor.customers.update(created.id, { phone: '+41446681800' }, { ifMatch: created });
  console.log('created', created.id, etagOf(created));
} catch (error) {
  if (!(error instanceof KontorError)) throw error;
  console.error(error.code, error.fields, error.requestId);
  process.exitCode = 1;
}
for await (const customer of kontor.customers.all({ sort: 'first_name', search: { last_name: is('Keller, Söhne') } })) {
  console.log(customer.id, customer.first_name, customer.last_name, customer.phone);
}
for await (const frame of kontor.notifications.stream({ signal: AbortSignal.timeout(10_000) })) {
  if (frame.event === 'message') console.log(frame.data.title);
  if (frame.event === 'open') break; // only for this example: the loop reconnects and continues until the signal is aborted
}
await kontor.signOut();
