// ---- Footnotes: [^1] leads to the note that begins with "[^1]:", which stands where it is written. They are numbered in the order
// of the notes. `env.notes` has each label's number, `env.view` the number of the view: an id that no other answer has.
const NOTE = /^\[\^([^\s[\]^]{1,100})\]:[ \t]*/;
const NOTE_REFERENCE = /\[\^([^\s[\]^]{1,100})\]/y;
const NOTE_INDENT = 4;
const noteId = ({view}, n) => `note-${view}-${n}`;

markdown.block.ruler.before('reference', 'note', (state, startLine, endLine, silent) => {
  const start = state.bMarks[startLine] + state.tShift[startLine];
  const found = NOTE.exec(state.src.slice(start, Math.min(state.eMarks[startLine], start + 200)));
  if (!found || state.sCount[startLine] - state.blkIndent >= 4) return false;
  if (silent) return true;
  const {env} = state;
  env.notes ??= new Map();
  const isFirst = !env.notes.has(found[1]);
  if (isFirst) env.notes.set(found[1], env.notes.size + 1);
  const open = Object.assign(state.push('note_open', 'div', 1), {map: [startLine, startLine + 1], meta: {n: env.notes.get(found[1]), isFirst}});
  const {parentType, blkIndent} = state;
  const kept = [state.bMarks[startLine], state.tShift[startLine], state.sCount[startLine]];
  state.parentType = 'note';
  state.blkIndent += NOTE_INDENT;
  [state.bMarks[startLine], state.tShift[startLine], state.sCount[startLine]] = [start + found[0].length, 0, state.blkIndent];
  state.md.block.tokenize(state, startLine, endLine, true);
  [state.bMarks[startLine], state.tShift[startLine], state.sCount[startLine]] = kept;
  Object.assign(state, {parentType, blkIndent});
  open.map[1] = state.line;
  state.push('note_close', 'div', -1);
  return true;
}, {alt: ['paragraph', 'reference', 'blockquote', 'list']});
markdown.inline.ruler.before('link', 'note_reference', (state, silent) => {
  NOTE_REFERENCE.lastIndex = state.pos;
  const found = NOTE_REFERENCE.exec(state.src);
  const n = found && state.env.notes?.get(found[1]);
  if (!n) return false;
  if (!silent) Object.assign(state.push('note_reference', '', 0), {content: found[0], meta: {n, id: noteId(state.env, n)}});
  state.pos += found[0].length;
  return true;
});
OPEN.note_open = (parent, {meta: {n, isFirst}}, env) => {
  const note = add(parent, 'div', 'note');
  const id = noteId(env, n);
  if (isFirst) note.id = id;
  add(note, 'sup', '', String(n));
  const words = add(note, 'div');
  const back = linkButton('', '↩', () => note.closest('.text')?.querySelector(`a[href="#${id}"]`)?.focus());
  back.ariaLabel = `Back to where note ${n} is asked for`;
  note.append(back);
  return words;
};
LEAF.note_reference = (parent, {content, meta: {n, id}}) => {
  if (parent.closest('a')) return parent.append(content);
  const link = add(add(parent, 'sup'), 'a', '', String(n));
  return Object.assign(link, {href: '#' + id, ariaLabel: `Note ${n}`});
};
