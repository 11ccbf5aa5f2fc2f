// Ollama's package for Node.js against pagoda_fake_server, whose model says what the prompt asks it to say.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Ollama} from 'ollama';

const client = new Ollama({host: process.env.PAGODA_URL});
const thinking = new Ollama({host: process.env.PAGODA_THINKING_URL});
const model = 'fake-model';
const asked = (content) => ({model, messages: [{role: 'system', content: 'Be brief.'}, {role: 'user', content}]});
const call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call>';
const parameters = {type: 'object', properties: {city: {type: 'string'}}, required: ['city']};
const tools = [{type: 'function', function: {name: 'get_weather', description: 'Weather.', parameters}}];

test('models', async () => {
  const {models} = await client.list();
  assert.ok(models.some(({name}) => name.startsWith(model)));
  assert.ok((await client.show({model})).capabilities.includes('completion'));
  assert.ok((await client.ps()).models.some(({name}) => name.startsWith(model)));
  assert.ok((await client.version()).version);
});

test('a chat', async () => {
  const {message, done_reason, prompt_eval_count, eval_count} = await client.chat(asked('say hello 猫'));
  assert.equal(message.content, 'hello 猫');
  assert.equal(done_reason, 'stop');
  assert.ok(prompt_eval_count > 0 && eval_count > 0);
});

test('a streamed chat', async () => {
  let text = '', last;
  for await (const part of await client.chat({...asked('say hello 猫'), stream: true})) {
    text += part.message.content;
    last = part;
  }
  assert.equal(text, 'hello 猫');
  assert.ok(last.done && last.eval_count > 0);
});

test('a stream that the client ends', async () => {
  const stream = await client.chat({...asked('count 10000'), stream: true});
  let pieces = 0;
  await assert.rejects(async () => {
    for await (const _ of stream) {
      if (++pieces === 5) stream.abort();
    }
  }, {name: 'AbortError'});
  assert.ok(pieces >= 5);
});

for (const stream of [false, true]) {
  test(`a result of a tool is told${stream ? ', streamed' : ''}`, async () => {
    const ask = async (messages) => {
      const answer = await client.chat({model, messages, tools, stream});
      if (!stream) return answer.message;
      const whole = {role: 'assistant', content: '', tool_calls: []};
      for await (const {message} of answer) {
        whole.content += message.content;
        whole.tool_calls.push(...message.tool_calls ?? []);
      }
      return whole;
    };
    const {messages} = asked(`say Look: ${call}${call}`);
    const first = await ask(messages);
    assert.deepEqual(first.tool_calls.map((made) => made.function.arguments), [{city: 'Zürich'}, {city: 'Zürich'}]);
    assert.equal(first.content.trim(), 'Look:');
    const results = first.tool_calls.map((made) => ({role: 'tool', tool_name: made.function.name, content: 'say It is sunny.'}));
    assert.equal((await ask([...messages, first, ...results])).content, 'It is sunny.');
  });
}

test('an answer of a schema', async () => {
  const {message} = await client.chat({...asked('say {"city": "Bern"}'), format: parameters});
  assert.deepEqual(JSON.parse(message.content), {city: 'Bern'});
});

test('thoughts', async () => {
  const turn = {...asked('say <think>First I think.</think> Then I answer.'), think: true};
  const {message} = await thinking.chat(turn);
  assert.equal(message.thinking, 'First I think.');
  assert.equal(message.content.trim(), 'Then I answer.');
  let thought = '';
  for await (const part of await thinking.chat({...turn, stream: true})) thought += part.message.thinking ?? '';
  assert.equal(thought, 'First I think.');
});

test('a text, whole and streamed', async () => {
  const {response, done} = await client.generate({model, prompt: 'say hello', system: 'Be brief.'});
  assert.ok(done);
  assert.equal(response, 'hello');
  let text = '';
  for await (const part of await client.generate({model, prompt: 'say hello', stream: true})) text += part.response;
  assert.equal(text, 'hello');
});

test('embeddings', async () => {
  const {embeddings} = await client.embed({model, input: ['one', 'another']});
  assert.equal(embeddings.length, 2);
  assert.notDeepEqual(embeddings[0], embeddings[1]);
});

test('an error has its status', async () => {
  await assert.rejects(client.chat({...asked('a'), model: 'no-such'}), (error) => error.status_code === 404 && /no-such/.test(error.message));
});
