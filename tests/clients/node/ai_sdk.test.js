// Vercel's AI SDK against pagoda_fake_server, whose model says what the prompt asks it to say: OpenAI's provider, which asks
// /v1/responses by itself, and the one for servers that are compatible to OpenAI's.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {createOpenAI} from '@ai-sdk/openai';
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {APICallError, Output, embed, embedMany, generateText, stepCountIs, streamText, tool} from 'ai';
import {z} from 'zod';

const id = 'fake-model';
const openai = createOpenAI({baseURL: process.env.PAGODA_URL + '/v1', apiKey: 'none'});
const compatible = (url) => createOpenAICompatible({name: 'pagoda', baseURL: url + '/v1', includeUsage: true, supportsStructuredOutputs: true});
const call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call>';
const models = {
  'responses': openai(id),
  'chat': openai.chat(id),
  'compatible': compatible(process.env.PAGODA_URL)(id),
};

for (const [name, model] of Object.entries(models)) {
  test(`${name}: a text`, async () => {
    const {text, usage, finishReason} = await generateText({model, prompt: 'say hello 猫'});
    assert.equal(text, 'hello 猫');
    assert.equal(finishReason, 'stop');
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
  });

  test(`${name}: a streamed text`, async () => {
    const result = streamText({model, prompt: 'say hello 猫'});
    let text = '';
    for await (const piece of result.textStream) text += piece;
    assert.equal(text, 'hello 猫');
    assert.ok((await result.usage).outputTokens > 0);
  });

  test(`${name}: a tool is run, and the conversation goes on`, async () => {
    const run = [];
    const {text, steps} = await generateText({
      model,
      prompt: `say ${call}`,
      stopWhen: stepCountIs(2),
      tools: {
        get_weather: tool({
          description: 'Weather.',
          inputSchema: z.object({city: z.string()}),
          execute: async (args) => { run.push(args); return 'sunny'; },
        }),
      },
    });
    assert.deepEqual(run, [{city: 'Zürich'}]);
    assert.equal(steps.length, 2);
    assert.ok(text.startsWith('A pagoda'), text);
  });

  test(`${name}: a streamed call`, async () => {
    const tools = {get_weather: tool({inputSchema: z.object({city: z.string()})})};
    const result = streamText({model, prompt: `say Look: ${call}`, tools});
    assert.deepEqual((await result.toolCalls).map(({input}) => input), [{city: 'Zürich'}]);
    assert.equal((await result.text).trim(), 'Look:');
    assert.equal(await result.finishReason, 'tool-calls');
  });

  test(`${name}: an answer of a schema`, async () => {
    const schema = z.object({city: z.string(), people: z.number()});
    const {output} = await generateText({model, prompt: 'say {"city": "Bern", "people": 5}', output: Output.object({schema})});
    assert.deepEqual(output, {city: 'Bern', people: 5});
  });
}

test('thoughts', async () => {
  const model = compatible(process.env.PAGODA_THINKING_URL)(id);
  const prompt = 'say <think>First I think.</think> Then I answer.';
  const whole = await generateText({model, prompt});
  assert.equal(whole.reasoningText, 'First I think.');
  assert.equal(whole.text.trim(), 'Then I answer.');
  const streamed = streamText({model, prompt});
  assert.equal(await streamed.reasoningText, 'First I think.');
  assert.equal((await streamed.text).trim(), 'Then I answer.');
});

test('a completion', async () => {
  assert.equal((await generateText({model: openai.completion(id), prompt: 'a'})).finishReason, 'length');
});

test('embeddings', async () => {
  const {embedding} = await embed({model: openai.embedding(id), value: 'one'});
  const {embeddings} = await embedMany({model: openai.embedding(id), values: ['one', 'another']});
  assert.equal(embeddings.length, 2);
  assert.deepEqual(embeddings[0], embedding);
});

test('an error has its status and says why', async () => {
  await assert.rejects(generateText({model: openai.chat('no-such'), prompt: 'a', maxRetries: 0}),
                       (error) => APICallError.isInstance(error) && error.statusCode === 404);
});
