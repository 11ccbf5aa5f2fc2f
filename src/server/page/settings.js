// ---- Settings: each number is declared once.
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
];
const SETTINGS = 'pagoda.settings';
const fits = (number, value) => Number.isFinite(value) && value >= (number.min ?? -Infinity) && value <= (number.max ?? Infinity);
let settings = {};
let wantsKey = false;  // the server has asked for one
{
  const kept = storedObject('localStorage', SETTINGS) ?? {};
  for (const number of NUMBERS) {
    if (fits(number, kept[number.name])) settings[number.name] = kept[number.name];
  }
  if (typeof kept.system === 'string') settings.system = kept.system;
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
  $('numbers').append(label);
}
function showSettings() {
  for (const number of NUMBERS) $('set-' + number.name).value = settings[number.name] ?? '';
  $('system').value = settings.system ?? '';
  $('api-key').value = apiKey();
  $('key-row').hidden = !wantsKey && !apiKey();
}
function openSettings(focus) {
  showSettings();
  $('settings').showModal();
  if (focus) $(focus).focus();
}
$('system').addEventListener('input', () => {
  settings.system = $('system').value;
  keepSettings();
});
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
