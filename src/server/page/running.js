// ---- Answers under way: that of the chat that is shown, and those of others, which go on and are kept in their own.
const runs = new Map();  // of each chat that is being answered {controller, view, isDropped?}
const isRunning = () => runs.has(chat);
const runningChat = (id) => [...runs.keys()].find((other) => other.id === id);
const stopAnswer = () => runs.get(chat)?.controller.abort();

function showRunning() {
  $('stop').hidden = !isRunning();
  $('send').hidden = isRunning();
  $('log').setAttribute('aria-busy', String(isRunning()));
}
// Asks for the answer to the last question of the chat that is shown, or for more of `turn`, its last answer, which `view` shows.
async function reply(view = addTurn('assistant'), turn) {
  const asked = chat;
  const run = {controller: new AbortController(), view: new AnswerView(view, asked, turn)};
  runs.set(asked, run);
  showRunning();
  keep(asked);
  for (const old of document.querySelectorAll('.passing')) old.remove();
  await readAnswer(run, history(shownTurns(asked)), !!turn);
  runs.delete(asked);
  if (!run.isDropped) keep(asked);
  if (asked === chat) {
    showRunning();
    focusInput();
  } else if (!$('welcome').hidden) {
    listChats();
  }
  if (!$('model').textContent) loadModel();
}
async function readAnswer({controller: {signal}, view}, messages, goesOn) {
  try {
    for await (const event of answer(messages, signal, goesOn)) {
      signal.throwIfAborted();
      view.add(event);
    }
    view.end();
  } catch (error) {
    if (signal.aborted) view.end('stopped');
    else view.fail(error);
  }
}
// Asks again for the answer that `view` shows, turn `i` if it came to one: the old answer, and what follows it, stay as another branch.
function tryAgain(view, i) {
  if (isRunning()) return;
  if (i !== undefined) chat.at = chat.turns[i].parent;
  while (view.nextSibling) view.nextSibling.remove();
  view.remove();
  reply();
}
// Asks for more of answer `i`, the last one.
function goOn(view, i) {
  if (isRunning()) return;
  for (const old of view.querySelectorAll('.foot, .trouble')) old.remove();
  reply(view, chat.turns[i]);
}
// Ends the answer of a chat that is being deleted: nothing of it is kept.
function dropAnswer(id) {
  const run = runs.get(runningChat(id));
  if (!run) return;
  run.isDropped = true;
  run.controller.abort();
}

document.addEventListener('visibilitychange', () => { if (document.hidden) [...runs.keys()].forEach(keep); });
addEventListener('pagehide', () => {
  const unfinished = new Set([...[...runs].filter(([, run]) => !run.isDropped).map(([asked]) => asked), ...unkept.keys()]);
  if (unfinished.delete(chat) || unfinished.size || !chatsOutlivePage) keepLeft(chat, [...unfinished]);
});
