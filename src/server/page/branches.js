// ---- Branches. A chat's turns are a tree: each has the index of its `parent`, which stands before it, -1 for a first question. What
// is shown, and what the model is told, is the way to the turn `at`.
function shownIndices({turns, at}) {
  const way = [];
  for (let i = at; i >= 0; i = turns[i].parent) way.push(i);
  return way.reverse();
}
const shownTurns = (which) => shownIndices(which).map((i) => which.turns[i]);
// Returns the turns that stand in the place of turn `i`, itself among them: questions that were asked instead, or answers to the same
// one.
function alternatives(turns, i) {
  const {parent, role} = turns[i];
  return [...turns.keys()].filter((other) => turns[other].parent === parent && turns[other].role === role);
}
// The newest turn that came of turn `i`, itself if nothing did; the newest of all for -1.
function newestFrom(turns, i) {
  const family = new Set([i]);
  turns.forEach((turn, j) => { if (family.has(turn.parent)) family.add(j); });
  return Math.max(...family);
}
const hasReplies = (turns, i) => turns.some((turn) => turn.parent === i);
function putTurn(which, turn, parent = which.at) {
  turn.parent = parent;
  which.at = which.turns.push(turn) - 1;
}
// Takes turn `i` away with all that came of it; what is shown is the newest that is left beside it, or of what stands before it.
function takeTurns(which, i) {
  const {turns} = which;
  const {parent} = turns[i];
  const gone = new Set([i]);
  turns.forEach((turn, j) => { if (gone.has(turn.parent)) gone.add(j); });
  const left = turns.filter((_, j) => !gone.has(j));
  for (const turn of left) if (turn.parent >= 0) turn.parent = left.indexOf(turns[turn.parent]);
  which.turns = left.some(({role}) => role === 'user') ? left : [];
  which.at = newestFrom(which.turns, which.turns.length ? parent : -1);
}

// ---- On the page.
// Arrows to the alternatives of turn `i`; nothing if there are none.
function branchArrows(i) {
  const all = alternatives(chat.turns, i);
  if (all.length < 2) return [];
  const place = all.indexOf(i);
  const what = chat.turns[i].role === 'user' ? 'question' : 'answer';
  const arrow = (step, sign, name) => {
    const button = linkButton('', sign, () => switchTo(all[place + step], name));
    Object.assign(button, {disabled: all[place + step] === undefined, ariaLabel: `${name} ${what}`});
    return button;
  };
  const arrows = make('span', 'branch');
  arrows.append(arrow(-1, '‹', 'Previous'), make('span', 'place', `${place + 1} / ${all.length}`), arrow(1, '›', 'Next'));
  return [arrows];
}
function switchTo(i, name) {
  if (isRunning()) return;
  const top = $('scroll').scrollTop;
  chat.at = newestFrom(chat.turns, i);
  const place = shownIndices(chat).indexOf(i);
  show(chat);
  following = false;
  $('scroll').scrollTop = top;
  const buttons = [...document.querySelectorAll('.turn')[place].querySelectorAll('.branch .link')];
  (buttons.find((button) => button.ariaLabel.startsWith(name) && !button.disabled) ?? buttons.find((button) => !button.disabled))?.focus();
  keep(chat);
}
function addQuestionFoot(view, i) {
  const foot = make('div', 'foot');
  foot.append(linkButton('edit', 'Edit', () => editQuestion(view, i)), deleteButton(i), ...branchArrows(i));
  view.append(foot);
}
// A button that takes turn `i` away; it asks first.
function deleteButton(i) {
  const button = linkButton('delete', 'Delete', () => {
    if (isRunning()) return;
    if (button.textContent === 'Delete') {
      button.textContent = hasReplies(chat.turns, i) ? 'Delete it and all that follows?' : 'Really delete?';
      return;
    }
    const key = draftKey();
    takeTurns(chat, i);
    moveDraft(key);
    keep(chat);
    show(chat);
    $('input').focus();
  });
  button.addEventListener('blur', () => { button.textContent = 'Delete'; });
  return button;
}
// The question becomes a field in its place.
function editQuestion(view, i) {
  if (isRunning()) return;
  const [text, foot] = [view.querySelector('.text'), view.querySelector('.foot')];
  const form = make('form', 'editor');
  const field = make('textarea');
  Object.assign(field, {value: chat.turns[i].content, ariaLabel: 'The question', rows: Math.min(12, chat.turns[i].content.split('\n').length + 1)});
  const end = () => {
    form.remove();
    text.hidden = foot.hidden = false;
    foot.querySelector('.edit').focus();
  };
  const ask = () => {
    if (field.value.trim() && field.value !== chat.turns[i].content) askInstead(i, field.value);
    else end();
  };
  form.addEventListener('submit', (event) => { event.preventDefault(); ask(); });
  field.addEventListener('keydown', (event) => {
    if (isComposing(event)) return;
    if (event.key === 'Escape') end();
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    ask();
  });
  const row = make('div', 'row');
  const cancel = make('button', '', 'Cancel');
  cancel.type = 'button';
  cancel.addEventListener('click', end);
  row.append(cancel, make('button', 'main', 'Ask'));
  form.append(field, row);
  text.hidden = foot.hidden = true;
  text.before(form);
  field.focus();
}
// Asks `content` in the place of question `i`, which stays as another branch if anything came of it.
function askInstead(i, content) {
  if (isRunning()) return;
  if (hasReplies(chat.turns, i)) {
    putTurn(chat, {...chat.turns[i], content}, chat.turns[i].parent);
  } else {
    chat.turns[i].content = content;
    chat.at = i;
  }
  show(chat, true);
  reply();
}
