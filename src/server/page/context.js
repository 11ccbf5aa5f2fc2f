// ---- The context: how many of the tokens that the model can read the conversation takes, as its latest answer has told.
const NEARLY_FULL = 0.85;
let modelTokens = 0;  // 0 if the server does not tell

function showContext(used = shownTurns(chat).findLast(({tokens}) => tokens)?.tokens ?? 0) {
  $('context').hidden = !used || !modelTokens;
  Object.assign($('context-meter'), {max: modelTokens, high: NEARLY_FULL * modelTokens, value: used});
  const end = used >= NEARLY_FULL * modelTokens ? ': nearly full, a new chat has room' : '';
  $('context-text').textContent = `${used.toLocaleString('en')} of ${modelTokens.toLocaleString('en')} tokens of context${end}`;
}
// `model` is as /v1/models tells it.
function showModel({id, max_model_len: tokens}) {
  const name = id.lastIndexOf('/') + 1;
  const told = `${id}, up to ${tokens} tokens`;
  $('model').replaceChildren(make('span', 'owner', id.slice(0, name)), id.slice(name));
  $('model').title = $('model-facts').textContent = told;
  modelTokens = Number.isSafeInteger(tokens) ? tokens : 0;
  showContext();
}
