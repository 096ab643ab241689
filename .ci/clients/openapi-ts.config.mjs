export default {
  input: process.env.OPENAPI_DOCUMENT,
  output: { path: 'generated/hey-api', importFileExtension: '.js' },
};
