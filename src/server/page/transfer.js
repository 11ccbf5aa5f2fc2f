// ---- Chats as files: Markdown to read elsewhere, JSON to be taken in again.
const FILE_FORMAT = 'pagoda.chat';
const MAX_FILE_BYTES = 16_000_000;  // what the longest chat takes as JSON, if not all of it is escaped

const fileOf = ({turns, at, name}) => JSON.stringify({format: FILE_FORMAT, version: CHAT_VERSION, name, turns, at}, null, 1) + '\n';
const markdownOf = (turns, name = titleOf(turns)) => `# ${name.split('\n')[0]}\n\n`
  + turns.map((turn) => `## ${turn.role === 'user' ? 'Question' : 'Answer'}\n\n${toldText(turn).trim()}\n`).join('\n');
function download(text, type, ending) {
  const link = make('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  const words = (chat.name ?? titleOf(chat.turns)).slice(0, 60).replace(/[^\p{L}\p{M}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '');
  link.download = (words || 'chat') + ending;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  $('export').close();
}
$('open-export').addEventListener('click', () => $('export').showModal());
$('export').addEventListener('click', (event) => { if (event.target === $('export')) $('export').close(); });
$('export-markdown').addEventListener('click', () => download(markdownOf(shownTurns(chat), chat.name), 'text/markdown', '.md'));
$('export-json').addEventListener('click', () => download(fileOf(chat), 'application/json', '.json'));

// The chat of a file that was exported; throws what is wrong with it.
async function importedChat(file) {
  if (file.size > MAX_FILE_BYTES) throw new Error(`expected at most ${MAX_FILE_BYTES} bytes, got ${file.size}`);
  let value = null;
  try { value = JSON.parse(await file.text()); } catch { throw new Error('expected JSON'); }
  if (value?.format !== FILE_FORMAT) throw new Error(`expected the format ${FILE_FORMAT}, got ${String(value?.format).slice(0, 40)}`);
  return newChat({...nameIn(value), ...checkedTree(value)});
}
$('import').addEventListener('click', () => $('import-file').click());
$('import-file').addEventListener('change', async () => {
  const file = $('import-file').files[0];
  if (!file) return;
  $('import-trouble').hidden = true;
  try {
    const imported = await importedChat(file);
    show(imported);
    await keep(imported);
  } catch (error) {
    $('import-trouble').textContent = `“${file.name.slice(0, 80)}” is no chat of Pagoda: ${error.message}.`;
    $('import-trouble').hidden = false;
  }
  $('import-file').value = '';
});
