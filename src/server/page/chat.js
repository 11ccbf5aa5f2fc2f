// ---- The conversation.
const SUGGESTIONS = ['Explain how a pagoda stays up in an earthquake', 'Write a haiku about morning rain', 'Plan a quiet Sunday'];
let chat = {id: newId(), writer: '', turns: []};
let running = null;  // the AbortController of the answer under way
let following = true;  // the end of the conversation is kept in view

// What the model is told: questions with their answers, and the last question. One that never got an answer is left out, as many
// templates refuse two messages of a side in a row.
function history(turns) {
  const counts = (turn, i) => (turn.role === 'assistant' ? turns[i - 1]?.role === 'user' : i === turns.length - 1 || turns[i + 1].role === 'assistant');
  return turns.filter(counts).map(({role, content}) => ({role, content}));
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
  turn.append(make('span', 'sr', role === 'user' ? 'You:' : 'Answer:'), make('div', 'text', text));
  $('log').append(turn);
  return turn;
}
function setRunning(controller) {
  running = controller;
  $('stop').hidden = !running;
  $('send').hidden = !!running;
  $('log').setAttribute('aria-busy', String(!!running));
}
function focusInput() {
  if (!matchMedia('(pointer: fine)').matches) return;
  const at = document.activeElement;
  if (!at?.offsetParent) $('input').focus();  // nowhere, or where nothing is seen any more
}

// A reload shows the tab's chat again; others are listed where a new one begins.
function keep(which) {
  keepChat(which);
  if (which === chat) store('sessionStorage', 'pagoda.chat', chat.id);
  if (!$('welcome').hidden) listChats();
}
function show(which) {
  running?.abort();
  setRunning(null);
  chat = which;
  store('sessionStorage', 'pagoda.chat', chat.id);
  $('log').replaceChildren();
  $('latest').hidden = true;
  $('welcome').hidden = chat.turns.length > 0;
  chat.turns.forEach(showTurn);
  following = true;
  if (!chat.turns.length) listChats();
  follow();
}
const startChat = () => show({id: newId(), writer: '', turns: []});
function showTurn({role, content, note}, i, turns) {
  const isLast = i === turns.length - 1;
  const view = addTurn(role, role === 'user' ? content : '');
  if (role === 'assistant') {
    new MarkdownView(view.querySelector('.text')).show(content);
    addFoot(view, {content, note, isLast});
  } else if (isLast) {
    addFoot(addTurn('assistant'), {content: '', note: 'No answer came', isLast});
  } else if (turns[i + 1].role === 'user') {
    leaveOut(view);
  }
}
const leaveOut = (view) => view.append(make('div', 'left-out', 'No answer came, so this is left out of the conversation'));
function listChats() {
  const chats = storedChats();
  $('earlier').hidden = !chats.length;
  $('delete-all').textContent = 'Delete all';
  $('chats').replaceChildren(...chats.map((each) => {
    const title = each.turns.find((turn) => turn.role === 'user').content.slice(0, 200);
    const row = make('li');
    const remove = linkButton('', '✕', () => { removeChat(each.id); listChats(); });
    remove.ariaLabel = 'Delete the chat: ' + title;
    row.append(linkButton('open', title, () => { show(each); $('input').focus(); }), remove);
    return row;
  }));
}

async function send(text) {
  if (running || !text.trim()) return;
  if (chat.turns.at(-1)?.role === 'user') leaveOut([...document.querySelectorAll('.turn.user')].at(-1));
  chat.turns.push({role: 'user', content: text});
  addTurn('user', text);
  $('input').value = '';
  resize();
  following = true;
  await reply();
}
// Asks for the answer to the last question.
async function reply() {
  const controller = new AbortController();
  const asked = chat;
  setRunning(controller);
  keep(asked);
  for (const old of document.querySelectorAll('.again')) old.remove();
  const view = new AnswerView(addTurn('assistant'), asked);
  try {
    for await (const event of answer(history(asked.turns), controller.signal)) view.add(event);
    view.end();
  } catch (error) {
    if (controller.signal.aborted) view.end('stopped');
    else view.fail(error);
  }
  keep(asked);
  if (running === controller) setRunning(null);
  if (!$('model').textContent) loadModel();
  focusInput();
}
function tryAgain() {
  if (running) return;
  if (chat.turns.at(-1).role === 'assistant') chat.turns.pop();
  [...document.querySelectorAll('.turn')].at(-1).remove();
  reply();
}
// Takes a question that got no answer back to where it was written, in a new chat if so asked.
function takeBack(inNewChat) {
  if (running) return;
  const question = chat.turns.pop().content;
  const views = [...document.querySelectorAll('.turn')];
  views.slice(views.findLastIndex((view) => view.matches('.user'))).forEach((view) => view.remove());
  if (chat.turns.length) keep(chat);
  else removeChat(chat.id);
  if (inNewChat || !chat.turns.length) startChat();
  $('input').value = [question, $('input').value].filter(Boolean).join('\n');
  resize();
  $('input').focus();
}

// What stands below an answer: buttons, and `note` in words.
function addFoot(turn, {content, note, isLast}) {
  const foot = make('div', 'foot');
  if (content) foot.append(copyButton(() => content));
  if (isLast) foot.append(linkButton('again', 'Try again', tryAgain));
  if (isLast && !content) foot.append(linkButton('again edit', 'Edit', () => takeBack(false)));
  if (note) foot.append(make('span', 'facts', note));
  turn.append(foot);
}
class AnswerView {
  constructor(view, asked) {
    this.view = view;
    this.asked = asked;
    this.text = view.querySelector('.text');
    this.text.classList.add('waiting');
    this.markdown = new MarkdownView(this.text);
    this.turn = {role: 'assistant', content: '', note: 'interrupted'};  // of the conversation from its first word on
    this.start = performance.now();
  }
  add(event) {
    const now = performance.now();
    const choice = event.choices[0];
    if (event.usage) this.tokens = event.usage.completion_tokens;
    if (choice?.finish_reason) this.reason = choice.finish_reason;
    if (!choice) return;
    this.first ??= now;
    this.last = now;
    if (choice.delta.reasoning_content) this.think(choice.delta.reasoning_content);
    const words = choice.delta.content || '';
    if (words && !this.turn.content) this.asked.turns.push(this.turn);
    this.turn.content += words;
    this.frame ??= requestAnimationFrame(() => this.draw(true));
  }
  // Thoughts are shown folded, and are no part of the conversation.
  think(words) {
    if (!this.thought) {
      this.thought = make('div', 'words');
      const folded = make('details', 'thought');
      folded.append(make('summary', '', 'Thoughts'), this.thought);
      this.text.before(folded);
    }
    this.thought.textContent += words;
  }
  draw(open) {
    this.frame = undefined;
    if (this.turn.content) this.text.classList.remove('waiting');
    this.markdown.show(this.turn.content, open);
  }
  finish(remark) {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.text.classList.remove('waiting');
    this.draw(false);
    const facts = this.facts();
    if (remark) facts.push(remark);
    this.turn.note = facts.join(' · ');
    addFoot(this.view, {content: this.turn.content, note: this.turn.note, isLast: true});
  }
  facts() {
    if (this.first === undefined) return [];
    const seconds = (this.last - this.first) / 1000;
    const facts = [`first token ${((this.first - this.start) / 1000).toFixed(2)} s`];
    if (this.tokens > 1 && seconds > 0) facts.unshift(`${((this.tokens - 1) / seconds).toFixed(1)} tokens/s`);
    if (this.tokens) facts.push(`${this.tokens} token${this.tokens === 1 ? '' : 's'}`);
    return facts;
  }
  end(remark) {
    if (!remark && !this.turn.content) remark = 'the answer is empty';
    this.finish(remark || (this.reason === 'length' ? 'cut off at the token limit' : ''));
  }
  fail(error) {
    const trouble = make('div', 'trouble', inWords(error));
    trouble.setAttribute('role', 'alert');
    if (error.status === 401) {
      wantsKey = true;
      trouble.append(linkButton('', 'Enter the key', () => openSettings('api-key')));
    }
    if (error.code === 'context_length_exceeded' && this.asked.turns.length > 1 && !this.turn.content) {
      trouble.append(linkButton('again', 'Ask in a new chat', () => takeBack(true)));
    }
    this.finish(this.turn.content ? 'interrupted' : '');
    this.text.after(trouble);
  }
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
$('input').addEventListener('input', resize);
$('input').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return;
  event.preventDefault();
  send($('input').value);
});
$('composer').addEventListener('submit', (event) => { event.preventDefault(); send($('input').value); });
$('stop').addEventListener('click', () => running?.abort());
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !isComposing(event) && !$('settings').open) running?.abort();
});
$('new').addEventListener('click', () => { startChat(); $('input').focus(); });
$('delete-all').addEventListener('click', () => {
  if ($('delete-all').textContent === 'Delete all') {
    $('delete-all').textContent = 'Really delete all?';
    return;
  }
  chatIds().forEach(removeChat);
  listChats();
});
for (const text of SUGGESTIONS) {
  const button = make('button', '', text);
  button.addEventListener('click', () => send(text));
  $('ideas').append(button);
}
addEventListener('storage', () => { if (!$('welcome').hidden) listChats(); });
addEventListener('pagehide', () => { if (running) keep(chat); });
document.addEventListener('visibilitychange', () => { if (running && document.hidden) keep(chat); });

show(storedChat(stored('sessionStorage', 'pagoda.chat')) ?? chat);
loadModel();
resize();
focusInput();
