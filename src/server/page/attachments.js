// ---- Text files beside a question: {name, text} each, in the turn's `files`. The model is told each as a fenced block.
const MAX_FILES = 8;  // of a question
const MAX_ATTACHED_BYTES = 200_000;
const MAX_NAME_CHARACTERS = 255;
let attached = [];  // to the question that is being written

// Returns the text that the model is told of a question. No run of backticks in a file ends its block.
function toldText({content, files = []}) {
  const blocks = files.map(({name, text}) => {
    const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
    const fence = '`'.repeat(longest + 1);
    return `${fence}${name.replace(/[\p{Cc}\u2028\u2029\x60]/gu, '_')}\n${text.replace(/\n$/, '')}\n${fence}\n\n`;
  });
  return blocks.join('') + content;
}
// Returns `files` of a turn, which came from outside, with what belongs there alone.
function checkedFiles(files, where) {
  expect(Array.isArray(files) && files.length <= MAX_FILES, `at most ${MAX_FILES} files` + where, Array.isArray(files) ? files.length : typeof files);
  return files.map((file) => {
    expect(typeof file?.name === 'string' && file.name.length <= MAX_NAME_CHARACTERS, `a file's name of at most ${MAX_NAME_CHARACTERS} characters` + where,
      file?.name?.length ?? typeof file?.name);
    expect(typeof file.text === 'string', `a file's text` + where, typeof file.text);
    return {name: file.name, text: file.text};
  });
}
// The text of `file`; throws why it cannot be attached.
async function attachedText(file) {
  if (/^image\/(?!svg)/.test(file.type)) throw new Error('images are not read here, only text is');
  if (file.size > MAX_ATTACHED_BYTES) throw new Error(`it has ${file.size} bytes, and ${MAX_ATTACHED_BYTES} can be attached`);
  const bytes = await file.arrayBuffer().catch(() => { throw new Error('it can’t be read'); });
  let text = '\0';
  try { text = new TextDecoder('utf-8', {fatal: true}).decode(bytes); } catch { /* as said below */ }
  if (text.includes('\0')) throw new Error('it is no text in UTF-8');
  return text;
}
async function attach(files) {
  const troubles = [];
  for (const file of files) {
    const name = file.name.slice(-MAX_NAME_CHARACTERS);
    try {
      const text = await attachedText(file);
      if (attached.length >= MAX_FILES) throw new Error(`a question takes ${MAX_FILES} files`);
      attached.push({name, text});
    } catch (error) {
      troubles.push(`“${name.slice(-80)}” is left out: ${error.message}.`);
    }
  }
  showAttached(troubles.join(' '));
  keepDraft();
}
function showAttached(trouble = '') {
  $('attached').replaceChildren(...attached.map((file) => {
    const chip = chipOf(file);
    const remove = linkButton('', '✕', () => {
      attached = attached.filter((other) => other !== file);
      showAttached();
      keepDraft();
      $('input').focus();
    });
    remove.ariaLabel = 'Remove the file: ' + file.name;
    chip.append(remove);
    return chip;
  }));
  $('attached').hidden = !attached.length;
  $('attach-trouble').textContent = trouble;
  $('attach-trouble').hidden = !trouble;
}
function takeAttached() {
  const files = attached;
  attached = [];
  showAttached();
  return files.length ? {files} : {};
}
function chipOf({name, text}) {
  const chip = make('span', 'chip');
  chip.append(make('span', 'name', name));
  chip.title = `${name}, ${text.length} characters`;
  return chip;
}
function addChips(view, files) {
  if (!files?.length) return;
  const chips = make('div', 'chips');
  chips.append(...files.map(chipOf));
  view.querySelector('.text').before(chips);
}

$('attach').addEventListener('click', () => $('attach-files').click());
$('attach-files').addEventListener('change', async () => {
  await attach([...$('attach-files').files]);
  $('attach-files').value = '';
  $('input').focus();
});
// A picture of the screen, say, is pasted as a file; a table may come as a picture beside its text.
$('input').addEventListener('paste', (event) => {
  if (!event.clipboardData.files.length || event.clipboardData.types.includes('text/plain')) return;
  event.preventDefault();
  attach([...event.clipboardData.files]);
});
const bringsFiles = (event) => !!event.dataTransfer?.types.includes('Files');
addEventListener('dragover', (event) => {
  if (!bringsFiles(event)) return;
  event.preventDefault();
  $('composer').classList.add('awaits');
});
addEventListener('dragleave', (event) => { if (!event.relatedTarget) $('composer').classList.remove('awaits'); });
addEventListener('drop', (event) => {
  $('composer').classList.remove('awaits');
  if (!bringsFiles(event)) return;
  event.preventDefault();
  attach([...event.dataTransfer.files]);
});
