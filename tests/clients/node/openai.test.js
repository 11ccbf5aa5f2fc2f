// OpenAI's package for Node.js against pagoda_fake_server, whose model says what the prompt asks it to say.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import OpenAI from 'openai';
import {zodResponseFormat} from 'openai/helpers/zod';
import {z} from 'zod';

const client = new OpenAI({baseURL: process.env.PAGODA_URL + '/v1', apiKey: 'none', maxRetries: 0});
const model = 'fake-model';
const asked = (content) => ({model, messages: [{role: 'user', content}]});
const parameters = {type: 'object', properties: {city: {type: 'string'}}, required: ['city']};
const tool = {name: 'get_weather', description: 'Weather.', parameters};
const call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call>';

test('models', async () => {
  const ids = [];
  for await (const {id} of client.models.list()) ids.push(id);
  assert.ok(ids.includes(model));
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('a chat', async () => {
  const {choices: [{message, finish_reason}], usage} = await client.chat.completions.create(asked('say hello 猫'));
  assert.equal(message.content, 'hello 猫');
  assert.equal(finish_reason, 'stop');
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
});

test('a streamed chat', async () => {
  const stream = await client.chat.completions.create({...asked('say hello 猫'), stream: true, stream_options: {include_usage: true}});
  let text = '', usage;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    usage ??= chunk.usage;
  }
  assert.equal(text, 'hello 猫');
  assert.ok(usage.completion_tokens > 0);
});

test('a stream that the client ends', async () => {
  const stream = await client.chat.completions.create({...asked('count 10000'), stream: true});
  let pieces = 0;
  for await (const _ of stream) {
    if (++pieces === 5) break;
  }
  assert.equal(pieces, 5);
});

test('calls of tools', async () => {
  const {choices: [{message, finish_reason}]} =
      await client.chat.completions.create({...asked(`say Look: ${call}${call}`), tools: [{type: 'function', function: tool}]});
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(message.content, 'Look:');
  assert.deepEqual(message.tool_calls.map((made) => JSON.parse(made.function.arguments)), [{city: 'Zürich'}, {city: 'Zürich'}]);
});

test('a streamed call is run, and the conversation goes on', async () => {
  const run = [];
  const runner = client.chat.completions.runTools({
    ...asked(`say ${call}`),
    stream: true,
    tools: [{type: 'function', function: {...tool, parse: JSON.parse, function: (args) => { run.push(args); return 'sunny'; }}}],
  });
  assert.match(await runner.finalContent(), /^A pagoda/);
  assert.deepEqual(run, [{city: 'Zürich'}]);
});

test('an answer of a schema', async () => {
  const format = zodResponseFormat(z.object({city: z.string(), people: z.number()}), 'city');
  const {choices: [{message}]} =
      await client.chat.completions.parse({...asked('say {"city": "Bern", "people": 5}'), response_format: format});
  assert.deepEqual(message.parsed, {city: 'Bern', people: 5});
});

test('a completion, alone and between two texts', async () => {
  assert.equal((await client.completions.create({model, prompt: 'say hello'})).choices[0].text, 'hello');
  assert.ok((await client.completions.create({model, prompt: 'a', suffix: 'b'})).choices[0].text);
});

test('responses', async () => {
  const first = await client.responses.create({model, input: 'say one', instructions: 'Be kind.'});
  assert.equal(first.output_text, 'one');
  const second = await client.responses.create({model, input: 'say two', previous_response_id: first.id});
  assert.equal(second.output_text, 'two');
  assert.equal((await client.responses.retrieve(first.id)).output_text, 'one');
  await client.responses.delete(first.id);
  await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
});

test('a streamed response with a call', async () => {
  const stream = client.responses.stream({model, input: `say Look: ${call}`, tools: [{type: 'function', strict: false, ...tool}]});
  const types = new Set();
  for await (const event of stream) types.add(event.type);
  for (const type of ['response.created', 'response.output_text.delta', 'response.function_call_arguments.done', 'response.completed'])
    assert.ok(types.has(type), type);
  const made = (await stream.finalResponse()).output.find(({type}) => type === 'function_call');
  assert.deepEqual(JSON.parse(made.arguments), {city: 'Zürich'});
});

test('embeddings', async () => {
  const {data} = await client.embeddings.create({model, input: ['one', 'another']});
  const {data: [plain]} = await client.embeddings.create({model, input: 'one', encoding_format: 'float'});
  assert.equal(data.length, 2);
  assert.equal(data[0].embedding.length, plain.embedding.length);
  data[0].embedding.forEach((value, i) => assert.ok(Math.abs(value - plain.embedding[i]) < 1e-6));
});

test('errors have their class, and name the field', async () => {
  await assert.rejects(client.chat.completions.create({...asked('a'), top_p: 2}),
                       (error) => error instanceof OpenAI.BadRequestError && error.param === 'top_p');
  await assert.rejects(client.chat.completions.create({...asked('a'), model: 'no-such'}), OpenAI.NotFoundError);
  await assert.rejects(client.images.generate({model, prompt: 'a'}), OpenAI.NotFoundError);
});
