// Anthropic's package for Node.js against pagoda_fake_server, whose model says what the prompt asks it to say.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import {betaZodTool} from '@anthropic-ai/sdk/helpers/beta/zod';
import {zodOutputFormat} from '@anthropic-ai/sdk/helpers/zod';
import {z} from 'zod';

const client = new Anthropic({baseURL: process.env.PAGODA_URL, apiKey: 'none', maxRetries: 0});
const thinking = new Anthropic({baseURL: process.env.PAGODA_THINKING_URL, apiKey: 'none', maxRetries: 0});
const model = 'fake-model';
const asked = (content) => ({model, max_tokens: 1500, system: 'Be brief.', messages: [{role: 'user', content}]});
const call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call>';
const tools = [{
  name: 'get_weather',
  description: 'Weather.',
  input_schema: {type: 'object', properties: {city: {type: 'string'}}, required: ['city']},
}];

test('models', async () => {
  const ids = [];
  for await (const {id} of client.models.list()) ids.push(id);
  assert.ok(ids.includes(model));
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('a message, and as many tokens as are counted', async () => {
  const {content, stop_reason, usage} = await client.messages.create(asked('say hello 猫'));
  assert.deepEqual(content.map(({type, text}) => [type, text]), [['text', 'hello 猫']]);
  assert.equal(stop_reason, 'end_turn');
  const {max_tokens, ...rest} = asked('say hello 猫');
  assert.equal((await client.messages.countTokens(rest)).input_tokens, usage.input_tokens);
});

test('a streamed message', async () => {
  const stream = client.messages.stream(asked('say hello 猫'));
  let text = '';
  stream.on('text', (piece) => { text += piece; });
  const {usage, stop_reason} = await stream.finalMessage();
  assert.equal(text, 'hello 猫');
  assert.equal(stop_reason, 'end_turn');
  assert.ok(usage.input_tokens > 0 && usage.output_tokens > 0);
});

test('a stream that the client ends', async () => {
  const stream = client.messages.stream(asked('count 10000'));
  let pieces = 0;
  for await (const {type} of stream) {
    if (type === 'content_block_delta' && ++pieces === 5) break;
  }
  assert.equal(pieces, 5);
});

test('results of tools are told', async () => {
  const first = await client.messages.create({...asked(`say Look: ${call}${call}`), tools});
  assert.equal(first.stop_reason, 'tool_use');
  assert.deepEqual(first.content.map(({type}) => type), ['text', 'tool_use', 'tool_use']);
  const results = first.content.slice(1).map(({id}) => ({type: 'tool_result', tool_use_id: id, content: 'say It is sunny.'}));
  const {messages} = asked(`say Look: ${call}${call}`);
  const second = await client.messages.create({
    ...asked(''), tools, messages: [...messages, {role: 'assistant', content: first.content}, {role: 'user', content: results}],
  });
  assert.equal(second.content[0].text, 'It is sunny.');
});

for (const stream of [false, true]) {
  test(`a runner of tools${stream ? ' that streams' : ''}`, async () => {
    const run = [];
    const tool = betaZodTool({
      name: 'get_weather',
      description: 'Weather.',
      inputSchema: z.object({city: z.string()}),
      run: async (args) => { run.push(args); return 'say It is sunny.'; },
    });
    const runner = client.beta.messages.toolRunner({...asked(`say ${call}`), tools: [tool], stream});
    if (stream) {
      for await (const message of runner) await message.finalMessage();
    }
    const {content} = await runner;
    assert.deepEqual(run, [{city: 'Zürich'}]);
    assert.equal(content.map(({text}) => text ?? '').join(''), 'It is sunny.');
  });
}

test('an answer of a schema', async () => {
  const format = zodOutputFormat(z.object({city: z.string(), people: z.number()}));
  const {parsed_output} = await client.messages.parse({...asked('say {"city": "Bern", "people": 5}'), output_config: {format}});
  assert.deepEqual(parsed_output, {city: 'Bern', people: 5});
});

test('thoughts, which go back with the conversation', async () => {
  const turn = {...asked('say <think>First I think.</think> Then I answer.'), thinking: {type: 'enabled', budget_tokens: 1024}};
  const {content} = await thinking.messages.create(turn);
  assert.deepEqual(content.map(({type}) => type), ['thinking', 'text']);
  assert.equal(content[0].thinking, 'First I think.');
  const streamed = await thinking.messages.stream(turn).finalMessage();
  assert.deepEqual(streamed.content.map(({type, text, thinking}) => [type, text, thinking]),
                   content.map(({type, text, thinking}) => [type, text, thinking]));
  const more = [...turn.messages, {role: 'assistant', content: streamed.content}, {role: 'user', content: 'say more'}];
  assert.equal((await thinking.messages.create({...turn, messages: more})).content[0].text, 'more');
});

test('errors have their class and their id', async () => {
  await assert.rejects(client.messages.create({...asked('a'), model: 'no-such'}),
                       (error) => error instanceof Anthropic.NotFoundError && error.type === 'not_found_error' && error.requestID === error.error.request_id);
  await assert.rejects(client.messages.create({...asked('a'), top_p: 2}), Anthropic.BadRequestError);
  await assert.rejects(client.messages.stream({...asked('fail now')}).finalMessage(), Anthropic.APIError);
});
