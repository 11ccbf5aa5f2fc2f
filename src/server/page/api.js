// ---- The server.
const root = document.querySelector('meta[name="root-path"]').content;
// A header takes Latin-1 alone; a key with anything else would be an error of the browser's, in its words.
const apiKey = () => (stored('sessionStorage', 'pagoda.key') ?? '').replace(/[^\x21-\x7e]/g, '');
const headers = () => ({'Content-Type': 'application/json', ...(apiKey() ? {Authorization: 'Bearer ' + apiKey()} : {})});

async function loadModel() {
  try {
    const response = await fetch(root + '/v1/models', {headers: headers()});
    $('key-notice').hidden = response.status !== 401;
    wantsKey ||= response.status === 401;
    if (response.status === 503) {
      $('model').textContent = 'not ready yet';
      setTimeout(loadModel, 1000);
    }
    if (!response.ok) return;
    showModel((await response.json()).data[0]);
  } catch { /* the first message will tell */ }
}
class ServerError extends Error {
  constructor(status, error) {
    super(error?.message || `The server answered with status ${status}.`);
    this.status = status;
    this.code = error?.code;
  }
}
// The data of each event; comments and events that are cut off are left out.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim()).join('\n');
      if (data === '[DONE]') return;
      if (data) yield JSON.parse(data);
    }
  }
}
// Yields the events of an answer to the conversation, or of more of its last message, an answer, if that `goesOn`.
async function* answer(conversation, signal, goesOn = false) {
  const {system} = settings;
  const fields = requestFields();
  if (goesOn) delete fields.response_format;  // which holds whole answers
  const messages = system?.trim() ? [{role: 'system', content: system}, ...conversation] : conversation;
  const more = goesOn ? {continue_final_message: true, add_generation_prompt: false} : {};
  const body = {...fields, ...more, messages, stream: true, stream_options: {include_usage: true, continuous_usage_stats: true}};
  const response = await fetch(root + '/v1/chat/completions', {method: 'POST', headers: headers(), body: JSON.stringify(body), signal});
  if (!response.ok) throw new ServerError(response.status, (await response.json().catch(() => null))?.error);
  let ended = false;
  for await (const event of events(response)) {
    if (event.error) throw new ServerError(500, event.error);
    ended ||= !!event.choices?.[0]?.finish_reason;
    yield event;
  }
  if (!ended) throw new ServerError(0, {message: 'The answer broke off: the server closed the connection before its end.'});
}
function inWords(error) {
  if (error instanceof TypeError) return 'The server can’t be reached. Is it still running?';
  if (error instanceof SyntaxError) return 'What came is no answer of a Pagoda server.';
  if (error.status === 401) return apiKey() ? 'The server does not accept this API key.' : 'This server wants an API key.';
  if (error.status === 429) return 'The server is busy. Please try again in a moment.';
  if (error.status === 503) return 'The server can’t answer now. ' + error.message;
  if (error.code === 'context_length_exceeded') {
    return 'This conversation is longer than the model can read, or asks for a longer answer than fits. Ask in a new chat, shorten the question, or lower “Max tokens”.';
  }
  return error.message;
}
