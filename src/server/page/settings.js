// ---- Settings: each number is declared once, with the element it stands in if that is not the first.
const NUMBERS = [
  {name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.05, about: '0: no chance'},
  {name: 'max_tokens', label: 'Max tokens', min: 1, step: 1, about: 'of an answer'},
  {name: 'top_p', label: 'Top-p', min: 0.01, max: 1, step: 0.01, about: 'of the likeliest, 1 is off'},
  {name: 'top_k', label: 'Top-k', min: 0, step: 1, about: 'likeliest tokens, 0 is off'},
  {name: 'min_p', label: 'Min-p', min: 0, max: 1, step: 0.01, about: 'least likelihood, 0 is off'},
  {name: 'seed', label: 'Seed', step: 1, about: 'repeats an answer'},
  {name: 'repetition_penalty', label: 'Repetition', min: 0.05, max: 2, step: 0.05, about: 'penalty, 1 is off'},
  {name: 'presence_penalty', label: 'Presence', min: -2, max: 2, step: 0.1, about: 'penalty, 0 is off'},
  {name: 'frequency_penalty', label: 'Frequency', min: -2, max: 2, step: 0.1, about: 'penalty, 0 is off'},
  {name: 'thinking_token_budget', label: 'Thinking budget', min: 0, step: 1, about: 'tokens of a thought', place: 'thinking-numbers'},
  {name: 'dry_multiplier', label: 'DRY', min: 0, max: 1000, step: 0.01, about: 'repetition penalty, 0 is off', place: 'more-numbers'},
  {name: 'dry_base', label: 'DRY base', min: 1, max: 1000, step: 0.01, about: 'its growth a token', place: 'more-numbers'},
  {name: 'dry_allowed_length', label: 'DRY length', min: 1, step: 1, about: 'a repetition that is free', place: 'more-numbers'},
  {name: 'dry_penalty_last_n', label: 'DRY range', min: -1, step: 1, about: 'tokens looked at, -1: all', place: 'more-numbers'},
  {name: 'xtc_probability', label: 'XTC', min: 0, max: 1, step: 0.05, about: 'its probability, 0 is off', place: 'more-numbers'},
  {name: 'xtc_threshold', label: 'XTC threshold', min: 0, max: 1, step: 0.01, about: 'of likely tokens', place: 'more-numbers'},
];
// Texts, and what may stand in each.
const TEXTS = {
  system: () => true,
  thinking: (text) => ['', 'on', 'off'].includes(text),
  stops: () => true,
  schema: () => true,
};
const SETTINGS = 'pagoda.settings';
const fits = (number, value) => Number.isFinite(value) && value >= (number.min ?? -Infinity) && value <= (number.max ?? Infinity);
let settings = {};
let wantsKey = false;  // the server has asked for one
{
  const kept = storedObject('localStorage', SETTINGS) ?? {};
  for (const number of NUMBERS) {
    if (fits(number, kept[number.name])) settings[number.name] = kept[number.name];
  }
  for (const [name, allows] of Object.entries(TEXTS)) {
    if (typeof kept[name] === 'string' && allows(kept[name])) settings[name] = kept[name];
  }
}
// Returns the schema that answers are to follow; undefined if none is given; throws why it is none.
function givenSchema() {
  if (!settings.schema?.trim()) return undefined;
  let schema = null;
  try { schema = JSON.parse(settings.schema); } catch { /* as said below */ }
  if (!schema || typeof schema !== 'object' || Array.isArray(schema)) throw new Error('The JSON schema of the settings is no object of JSON, so no message is sent.');
  return schema;
}
function checkSchema() {
  let trouble = '';
  try { givenSchema(); } catch (error) { trouble = error.message; }
  $('schema').setAttribute('aria-invalid', String(!!trouble));
  $('schema-trouble').textContent = trouble;
}
// The texts that end an answer: one a line, in which \n is a new line, \t a tab and \\ a backslash.
function givenStops() {
  const lines = (settings.stops ?? '').split('\n').filter(Boolean);
  return lines.map((line) => line.replace(/\\([nt\\])/g, (_, sign) => ({n: '\n', t: '\t', '\\': '\\'})[sign]));
}
// Returns the fields of a request that the settings say; what is left empty is not among them.
function requestFields() {
  const fields = Object.fromEntries(Object.entries(settings).filter(([name]) => !(name in TEXTS)));
  const [stops, schema] = [givenStops(), givenSchema()];
  if (settings.thinking) fields.enable_thinking = settings.thinking === 'on';
  if (stops.length) fields.stop = stops;
  if (schema) fields.response_format = {type: 'json_schema', json_schema: {name: 'answer', schema}};
  return fields;
}
const keepSettings = () => store('localStorage', SETTINGS, JSON.stringify(settings));

for (const number of NUMBERS) {
  const label = make('label');
  const caption = make('span', '', number.label + ' ');
  caption.append(make('small', '', number.about));
  const input = make('input');
  Object.assign(input, {type: 'number', id: 'set-' + number.name, inputMode: number.step < 1 ? 'decimal' : 'numeric', placeholder: 'default', step: number.step});
  if (number.min !== undefined) input.min = number.min;
  if (number.max !== undefined) input.max = number.max;
  input.addEventListener('input', () => {
    if (input.validity.valid && input.value !== '') settings[number.name] = Number(input.value);
    else delete settings[number.name];
    keepSettings();
  });
  label.append(caption, input);
  $(number.place ?? 'numbers').append(label);
}
function showSettings() {
  for (const number of NUMBERS) $('set-' + number.name).value = settings[number.name] ?? '';
  for (const name of Object.keys(TEXTS)) $(name).value = settings[name] ?? '';
  checkSchema();
  const isMoreSet = ['thinking', 'stops', 'schema'].some((name) => settings[name]) || NUMBERS.some(({name, place}) => place && name in settings);
  $('more').open ||= isMoreSet;
  $('api-key').value = apiKey();
  $('key-row').hidden = !wantsKey && !apiKey();
}
function openSettings(focus) {
  showSettings();
  $('settings').showModal();
  if (focus) $(focus).focus();
}
for (const name of Object.keys(TEXTS)) {
  $(name).addEventListener($(name).matches('select') ? 'change' : 'input', () => {
    if ($(name).value) settings[name] = $(name).value;
    else delete settings[name];
    keepSettings();
    checkSchema();
  });
}
// A number that is out of range may stand where it is folded.
$('settings-form').addEventListener('invalid', (event) => event.target.closest('details')?.setAttribute('open', ''), true);
$('api-key').addEventListener('input', () => store('sessionStorage', 'pagoda.key', $('api-key').value.trim()));
$('reset').addEventListener('click', () => {
  settings = {};
  keepSettings();
  showSettings();
});
$('settings').addEventListener('close', () => loadModel());
$('settings').addEventListener('click', (event) => { if (event.target === $('settings')) $('settings').close(); });
$('open-settings').addEventListener('click', () => openSettings());
for (const button of document.querySelectorAll('.enter-key')) button.addEventListener('click', () => openSettings('api-key'));
