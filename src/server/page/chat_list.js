// ---- The list of earlier chats, where a new one begins: each with its date, found by words, opened, renamed and deleted.
const SEARCH_AFTER_MS = 120;
let lists = 0;
let searching = 0;  // the timer of a search that is about to begin

// The day of `time`, or the time of today; '' if there is no such date.
function dateOf(time, now = new Date()) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  const midnight = (day) => new Date(day).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(now) - midnight(date)) / 86_400_000);
  if (days === 0) return date.toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'});
  if (days === 1) return 'Yesterday';
  const year = date.getFullYear() === now.getFullYear() ? {} : {year: 'numeric'};
  return date.toLocaleDateString([], {day: 'numeric', month: 'short', ...year});
}
function timeOf(time) {
  const element = make('time', 'date', dateOf(time));
  if (element.textContent) Object.assign(element, {dateTime: new Date(time).toISOString(), title: new Date(time).toLocaleString()});
  return element;
}
// A name that is being written is left alone: its end lists the chats again.
async function listChats() {
  const mine = ++lists;
  await changing;
  const words = $('search').value.trim();
  const chats = await listedChats();
  const found = words && await idsWith(words);
  if (mine !== lists || $('chats').querySelector('form')) return;  // a later one shows what there is now
  const shown = chats.filter(({id}) => !words || found.has(id));
  $('earlier').hidden = !chats.length;
  $('where-kept').textContent = chatsOutlivePage ? 'They are kept in this browser alone.' : 'This browser keeps them no longer than this page is open.';
  $('delete-all').textContent = 'Delete all';
  $('delete-all').hidden = !!words;
  $('search-result').textContent = !words ? '' : `${shown.length || 'No'} chat${shown.length === 1 ? ' has' : 's have'} these words`;
  $('chats').replaceChildren(...shown.map(rowOf));
}
function rowOf(listed) {
  const {id, title, time} = listed;
  const row = make('li');
  row.dataset.id = id;
  const open = linkButton('open', title, () => openChat(id, open));
  open.addEventListener('keydown', (event) => { if (event.key === 'F2') rename(row, listed); });
  const name = linkButton('rename', '✎', () => rename(row, listed));
  const remove = linkButton('remove', '✕', () => removeFrom(row, id));
  name.ariaLabel = 'Rename the chat: ' + title;
  remove.ariaLabel = 'Delete the chat: ' + title;
  name.title = 'Rename (F2)';
  row.append(open, runningChat(id) ? make('span', 'date answering', 'Answering') : timeOf(time), name, remove);
  return row;
}
// Focuses the button of `selector` in the chat's row; where the chat is gone, what is before the list.
function focusRow(id, selector) {
  const row = [...$('chats').children].find((other) => other.dataset.id === id);
  const button = row?.querySelector(selector) ?? $('search');
  (button.checkVisibility() ? button : $('input')).focus();
}
function deleteChat(id) {
  dropAnswer(id);
  dropDraft(id);
  removeChat(id);
}
async function removeFrom(row, id) {
  const next = (row.nextSibling ?? row.previousSibling)?.dataset.id;
  deleteChat(id);
  await listChats();
  focusRow(next, '.remove');
}
async function openChat(id, button) {
  await changing;
  const found = runningChat(id) ?? await storedChat(id);
  if (found) {
    show(found);
    $('input').focus();
  } else {
    button.textContent = 'This chat can’t be read';
  }
}
// The row becomes a field. Enter keeps the name, and so does going elsewhere; Escape does not. An empty one is the first question.
function rename(row, {id, title}) {
  const form = make('form', 'renaming');
  const field = make('input');
  Object.assign(field, {value: title, ariaLabel: 'Name of the chat', maxLength: MAX_TITLE_CHARACTERS, autocomplete: 'off'});
  let ended = false;
  const end = async (name) => {
    if (ended) return;
    ended = true;
    const focused = document.activeElement === field;
    form.remove();
    if (name !== title) renameChat(id, name);
    await listChats();
    if (focused) focusRow(id, '.rename');
  };
  form.addEventListener('submit', (event) => { event.preventDefault(); end(field.value.trim()); });
  field.addEventListener('blur', () => end(field.value.trim()));
  field.addEventListener('keydown', (event) => { if (event.key === 'Escape' && !isComposing(event)) end(title); });
  form.append(field);
  row.replaceChildren(form);
  field.focus();
  field.select();
}

$('search').addEventListener('input', () => {
  clearTimeout(searching);
  searching = setTimeout(listChats, SEARCH_AFTER_MS);
});
$('delete-all').addEventListener('click', async () => {
  if ($('delete-all').textContent === 'Delete all') {
    $('delete-all').textContent = 'Really delete all?';
    return;
  }
  for (const {id} of await listedChats()) deleteChat(id);
  await listChats();
  $('input').focus();
});
channel.addEventListener('message', () => { if (!$('welcome').hidden) listChats(); });
