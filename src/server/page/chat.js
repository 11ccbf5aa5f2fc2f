// ---- The conversation.
const SUGGESTIONS = ['Explain how a pagoda stays up in an earthquake', 'Write a haiku about morning rain', 'Plan a quiet Sunday'];
let chat = newChat();
let following = true;  // the end of the conversation is kept in view

// Returns the messages that the model is told: questions with their answers, and the last question. One that never got an answer is left out, as many
// templates refuse two messages of a side in a row.
function history(turns) {
  const counts = (turn, i) => (turn.role === 'assistant' ? turns[i - 1]?.role === 'user' : i === turns.length - 1 || turns[i + 1].role === 'assistant');
  return turns.filter(counts).map((turn) => ({role: turn.role, content: toldText(turn)}));
}
function copyButton(text) {
  const button = make('button', 'link', 'Copy');
  button.type = 'button';
  button.addEventListener('click', async () => {
    button.textContent = (await copy(text())) ? 'Copied' : 'Copying is not allowed here';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return button;
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* there is none where the page comes from another machine without TLS */ }
  const field = make('textarea', 'sr');
  field.value = text;
  document.body.append(field);
  const before = document.activeElement;
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  before?.focus();
  return done;
}
function linkButton(className, text, act) {
  const button = make('button', 'link ' + className, text);
  button.type = 'button';
  button.addEventListener('click', act);
  return button;
}

// The end is followed until the reader scrolls up, and again once the reader is back there.
let lastTop = 0;
function follow() {
  if (following) $('scroll').scrollTop = $('scroll').scrollHeight;
}
$('scroll').addEventListener('scroll', () => {
  const {scrollTop, scrollHeight, clientHeight} = $('scroll');
  if (scrollHeight - scrollTop - clientHeight < 8) following = true;
  else if (scrollTop < lastTop) following = false;
  lastTop = scrollTop;
  $('latest').hidden = following;
});
new ResizeObserver(follow).observe($('log'));
new ResizeObserver(follow).observe($('scroll'));
$('latest').addEventListener('click', () => { following = true; follow(); });

function addTurn(role, text = '') {
  $('welcome').hidden = true;
  const turn = make('article', 'turn ' + role);
  turn.append(make('h2', 'sr', role === 'user' ? 'You:' : 'Answer:'), make('div', 'text', text));
  $('log').append(turn);
  return turn;
}
function focusInput() {
  if (!matchMedia('(pointer: fine)').matches) return;
  const at = document.activeElement;
  if (!at?.offsetParent) $('input').focus();  // nowhere, or where nothing is seen any more
}

// A reload shows the tab's chat again; others are listed where a new one begins.
async function keep(which) {
  $('open-export').hidden = !chat.turns.length;
  await keepChat(which);
  if (which === chat) store('sessionStorage', 'pagoda.chat', chat.id);
}
// If it `asks`, an answer to its last question is about to come.
function show(which, asks = false) {
  chat = which;
  showDraft();
  showRunning();
  store('sessionStorage', 'pagoda.chat', chat.id);
  $('log').replaceChildren();
  $('latest').hidden = true;
  $('welcome').hidden = chat.turns.length > 0;
  $('open-export').hidden = !chat.turns.length;
  $('import-trouble').hidden = true;
  const answering = runs.get(chat)?.view;
  const shown = shownIndices(chat).filter((i) => chat.turns[i] !== answering?.turn);
  shown.forEach((i, place) => showTurn(i, shown[place + 1], asks || !!answering));
  if (answering) $('log').append(answering.view);
  showContext();
  following = true;
  $('search').value = '';
  if (!chat.turns.length) listChats();
  follow();
}
const startChat = () => show(newChat());
// Shows turn `i`, before turn `next` if there is one.
function showTurn(i, next, asks) {
  const {role, content, note, files} = chat.turns[i];
  const isLast = next === undefined;
  const view = addTurn(role, role === 'user' ? content : '');
  if (role === 'assistant') {
    new MarkdownView(view.querySelector('.text')).show(content);
    addFoot(view, {content, note, isLast, i});
    return;
  }
  addChips(view, files);
  addQuestionFoot(view, i);
  if (isLast && !asks) addFoot(addTurn('assistant'), {content: '', note: 'There is no answer', isLast});
  else if (!isLast && chat.turns[next].role === 'user') leaveOut(view);
}
const leaveOut = (view) => view.append(make('div', 'left-out', 'It has no answer, so it is left out of the conversation'));
async function send(text) {
  if (isRunning() || !text.trim()) return;
  if (chat.turns[chat.at]?.role === 'user') leaveOut([...document.querySelectorAll('.turn.user')].at(-1));
  const key = draftKey();
  if (text === $('input').value) $('input').value = '';
  putTurn(chat, {role: 'user', content: text, ...takeAttached()});
  drafts.delete(key);
  keepDraft();
  resize();
  const view = addTurn('user', text);
  addChips(view, chat.turns[chat.at].files);
  addQuestionFoot(view, chat.at);
  following = true;
  await reply();
}
// Takes the last question, which got no answer, to a new chat.
function takeToNewChat() {
  if (isRunning()) return;
  const {content: question, files = []} = chat.turns[chat.at];
  if (hasReplies(chat.turns, chat.at)) chat.at = newestFrom(chat.turns, chat.at);
  else takeTurns(chat, chat.at);
  keep(chat);
  const [written, others] = [$('input').value, attached];
  setComposer('', []);
  keepDraft();
  startChat();
  setComposer([question, written, $('input').value].filter(Boolean).join('\n'), [...files, ...others, ...attached].slice(0, MAX_FILES));
  keepDraft();
  $('input').focus();
}

// ---- The composer.
function resize() {
  const input = $('input');
  input.style.height = 'auto';
  input.style.height = input.scrollHeight + 'px';
  $('send').disabled = !input.value.trim();
}
// Keys that belong to an input method; Safari tells of them by their code alone.
const isComposing = (event) => event.isComposing || event.keyCode === 229;
$('input').addEventListener('input', () => { resize(); keepDraft(); });
$('input').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return;
  event.preventDefault();
  send($('input').value);
});
$('composer').addEventListener('submit', (event) => { event.preventDefault(); send($('input').value); });
$('stop').addEventListener('click', stopAnswer);
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !isComposing(event) && !document.querySelector('dialog[open]')) stopAnswer();
});
$('new').addEventListener('click', () => { startChat(); $('input').focus(); });
for (const text of SUGGESTIONS) {
  const button = make('button', '', text);
  button.addEventListener('click', () => send(text));
  $('ideas').append(button);
}
addEventListener('pageshow', (event) => { if (event.persisted) forget('sessionStorage', LEAVING); });

async function start() {
  const first = chat;
  const id = stored('sessionStorage', 'pagoda.chat');
  $('welcome').hidden = !!id;
  const found = await takeUpLeft() ?? (id && await storedChat(id));
  const typed = $('input').value;  // before the chat was there
  if (chat === first && !chat.turns.length) show(found || chat);
  keepsDrafts = true;
  if (typed && $('input').value !== typed) {
    setComposer([$('input').value, typed].filter(Boolean).join('\n'), attached);
    keepDraft();
  }
  loadModel();
  focusInput();
}
resize();
start();
