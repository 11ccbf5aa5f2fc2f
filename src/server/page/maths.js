// ---- Formulas in LaTeX, as MathML: $x$, $$x$$, \(x\), \[x\], and environments that stand alone.
//
// Temml makes a tree of a formula. Elements are made of the tree here, from lists of what is allowed, so that no formula
// reaches anything but its own box.
const MAX_FORMULA = 4000;  // characters
const MAX_FORMULA_DEPTH = 64;  // of elements within one another
const MAX_FORMULAS_KEPT = 200;  // drawn before, for a block that is drawn again
const MATHML = 'http://www.w3.org/1998/Math/MathML';
const MATHML_TAGS = new Set(('math maction mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt mstyle ' +
  'msub msubsup msup mtable mtd mtext mtr munder munderover menclose none').split(' '));
const MATHML_ATTRIBUTES = new Set(('accent accentunder columnalign depth display displaystyle fence form height largeop linebreak linethickness ' +
  'lspace mathbackground mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowspacing rspace scriptlevel separator stretchy ' +
  'symmetric voffset width').split(' '));
const CLOSING = {'$': '$', '$$': '$$', '\\(': '\\)', '\\[': '\\]'};
const INLINE_OPENING = /\$\$?(?!\$)|\\[([]/y;
const BLOCK_OPENING = /^(?:\$\$(?!\$)|\\\[|\\begin\{((?:align(?:ed|at)?|cases|equation|gather(?:ed)?|multline|[bpvBV]?matrix)\*?)\})/;
const SIGN = /[\\^_=+<>*/{}|]/;  // which tells a formula from other words
const PRICE = /^\d[\d.,]*\s+[a-z]{2}/i;
const DEFINITION = /\\(?:[egx]?def|let|futurelet|(?:re|provide)?(?:new)?command|global|long)(?![a-z])/i;  // a few of them make a long text

// The index in `text` of the first `closing` that no slash takes away; -1 if there is none.
function endOfFormula(text, closing) {
  for (let i = text.indexOf(closing); i >= 0; i = text.indexOf(closing, i + 1)) {
    if (/\\*$/.exec(text.slice(Math.max(0, i - 20), i))[0].length % 2 === 0) return i;
  }
  return -1;
}
// Tells dollars that enclose a formula from prices and names of variables.
function areDollars(tex, before, after) {
  return !/[\w$]/.test(before) && !/[\w$]/.test(after) && !/^\s|\s$/.test(tex) && !PRICE.test(tex);
}
function isFormula(tex, opening) {
  if (!tex.trim() || tex.includes('`')) return false;
  if (opening === '\\(') return /[\p{L}\p{N}]/u.test(tex);
  if (opening === '\\[') return SIGN.test(tex) && /[\p{L}\p{N}]/u.test(tex);
  return opening === '$' || SIGN.test(tex) || !/\s/.test(tex);
}
// The formula that begins at `start` of `src`, as {opening, tex, length}; one that does not end has no length.
function formulaAt(src, start) {
  INLINE_OPENING.lastIndex = start;
  const opening = INLINE_OPENING.exec(src)?.[0];
  const before = src[start - 1] ?? ' ';
  if (!opening || (opening[0] === '$' && before === '$')) return undefined;
  const first = start + opening.length;
  const rest = src.slice(first, first + MAX_FORMULA);
  const end = endOfFormula(rest, CLOSING[opening]);
  if (end < 0) return {opening, tex: rest};
  const tex = rest.slice(0, end);
  const after = rest[end + opening.length] ?? ' ';
  if (!isFormula(tex, opening) || (opening === '$' && !areDollars(tex, before, after)) || (opening === '$$' && after === '$')) return undefined;
  return {opening, tex, length: tex.length + 2 * opening.length};
}
// Tells whether more of a formula is likely to come, rather than more of a sentence.
function isHalfFormula({opening, tex}, before) {
  if (opening !== '$') return SIGN.test(tex) || tex.length < 10;
  return tex.length < 300 && areDollars(tex.trimEnd(), before, ' ') && /^[^\d\s]|^\d+\s*[^\d\s.,\-a-z]/i.test(tex)
      && !/\*\*|`|[a-z]{3,} +[a-z]{2,}/i.test(tex);
}
markdown.inline.ruler.before('escape', 'formula', (state, silent) => {
  const {src, pos, env} = state;
  const formula = formulaAt(src, pos);
  if (!formula) return false;
  if (formula.length) {
    if (!silent) Object.assign(state.push('formula', '', 0), {content: formula.tex, markup: formula.opening});
    state.pos += formula.length;
    return true;
  }
  // Behind `endOfOpen` stand partners of marks, which are no part of the text.
  if (!(env.endOfOpen > pos) || !isHalfFormula({...formula, tex: src.slice(pos + formula.opening.length, env.endOfOpen)}, src[pos - 1] ?? ' ')) return false;
  if (!silent) state.push('text', '', 0).content = src.slice(pos, env.endOfOpen);
  state.pos = env.endOfOpen;
  return true;
});
// Looks for `closing` in the lines behind `startLine`. Returns the line it stands in and where; {line} if there is none before that
// line, at which the block ends or the text is too long for a formula.
function endOfBlock(state, startLine, endLine, closing) {
  const gaps = state.gaps ??= {};  // behind line `from` and before line `to` no such `closing` stands
  const key = state.blkIndent + closing;
  const gap = gaps[key]?.from <= startLine && startLine < gaps[key].to ? gaps[key] : {from: startLine, to: startLine + 1};
  let line = gap.to;
  let end = -1;
  for (; line < endLine && state.eMarks[line] - state.bMarks[startLine] <= MAX_FORMULA; ++line) {
    if (state.sCount[line] < state.blkIndent && !state.isEmpty(line)) break;
    end = endOfFormula(state.getLines(line, line + 1, state.blkIndent, false), closing);
    if (end >= 0) break;
  }
  gaps[key] = {from: gap.from, to: line};
  return end < 0 ? {line} : {line, end};
}
// The block's formula that begins at `startLine`, as {tex, source, isHalf, nextLine}.
function formulaBlockAt(state, startLine, endLine) {
  const first = state.src.slice(state.bMarks[startLine] + state.tShift[startLine], state.eMarks[startLine]);
  const opening = BLOCK_OPENING.exec(first);
  if (!opening) return undefined;
  const closing = CLOSING[opening[0]] ?? `\\end{${opening[1]}}`;
  const within = endOfFormula(first.slice(opening[0].length), closing);
  const {line, end} = within < 0 ? endOfBlock(state, startLine, endLine, closing) : {line: startLine, end: opening[0].length + within};
  const linesBefore = (n) => [first, ...(n > startLine + 1 ? [state.getLines(startLine + 1, n, state.blkIndent, false)] : [])];
  if (end === undefined) {
    const isWhole = !state.env.open || line < endLine || state.src.slice(state.eMarks[line - 1]).trim();
    return isWhole ? undefined : {source: linesBefore(line).join('\n'), isHalf: true, nextLine: line};
  }
  const last = line > startLine ? state.getLines(line, line + 1, state.blkIndent, false) : first;
  const behind = last.slice(end + closing.length).trim();
  const whole = line > startLine ? [...linesBefore(line), last.slice(0, end)].join('\n') : first.slice(0, end);
  const tex = whole.slice(opening[0].length);
  if (!/^[.,;:!?]?$/.test(behind) || !/[\p{L}\p{N}]/u.test(tex)) return undefined;
  return {tex: (opening[1] ? whole + closing : tex) + behind, source: whole + closing + behind, nextLine: line + 1};
}
markdown.block.ruler.before('fence', 'formula_block', (state, startLine, endLine, silent) => {
  if (state.sCount[startLine] - state.blkIndent >= 4) return false;
  const formula = formulaBlockAt(state, startLine, endLine);
  if (!formula) return false;
  if (silent) return true;
  const {tex, source, isHalf, nextLine} = formula;
  state.line = nextLine;
  Object.assign(state.push('formula_block', '', 0), {map: [startLine, nextLine], content: tex ?? source, meta: {isHalf, source}});
  return true;
}, {alt: ['paragraph', 'reference', 'blockquote', 'list']});

// ---- Formulas to elements.
function mathElement(node, depth = 0) {
  if (node.text !== undefined) return document.createTextNode(node.text);
  if (!MATHML_TAGS.has(node.type) || depth > MAX_FORMULA_DEPTH) throw new Error(`expected a formula, got ${node.type} at depth ${depth}`);
  const element = document.createElementNS(MATHML, node.type);
  for (const [name, value] of Object.entries(node.attributes)) {
    if (MATHML_ATTRIBUTES.has(name)) element.setAttribute(name, value);
    else if (name === 'style') element.style.cssText = value;  // one of Temml's own
  }
  const classes = node.classes.filter(Boolean);
  if (classes.length) element.setAttribute('class', classes.join(' '));
  for (const [name, value] of Object.entries(node.style)) element.style[name] = value;
  const children = node.children.flatMap((child) => (child.type || child.text !== undefined ? child : child.children ?? []));  // a fragment's own
  element.append(...children.map((child) => mathElement(child, depth + 1)));
  return element;
}
function mathsOf(tex, displayMode) {
  if (tex.length > MAX_FORMULA || DEFINITION.test(tex)) throw new Error('expected a formula of its own');
  return mathElement(temml().__renderToMathMLTree(tex, {displayMode, throwOnError: true, trust: false, maxExpand: 500, maxSize: [40, 400]}));
}
const formulas = new Map();  // by their sources, the last used at the end
// Returns a formula's box, or undefined if it can't be drawn.
function formulaBox(tex, isApart) {
  const key = (isApart ? 'apart ' : 'within ') + tex;
  let maths = formulas.get(key);
  if (maths === undefined) {
    try {
      maths = mathsOf(tex, isApart);
    } catch {
      maths = null;  // of whatever kind: the source is shown
    }
  }
  formulas.delete(key);
  formulas.set(key, maths);
  if (formulas.size > MAX_FORMULAS_KEPT) formulas.delete(formulas.keys().next().value);
  if (!maths) return undefined;
  const box = make('span', isApart ? 'formula apart' : 'formula');
  box.append(maths.cloneNode(true));
  drawnFrom.set(box, {source: key});
  scrolledFormulas.observe(box);
  return box;
}
// Lets the keyboard scroll formulas that are wider than their box.
const scrolledFormulas = new ResizeObserver((entries) => {
  for (const {target} of entries) {
    if (target.scrollWidth > target.clientWidth) Object.assign(target, {tabIndex: 0, role: 'group', ariaLabel: 'Formula'});
    else ['tabindex', 'role', 'aria-label'].forEach((name) => target.removeAttribute(name));
  }
});
LEAF.formula = (parent, {content, markup}) =>
  parent.append(formulaBox(content, markup === '$$' || markup === '\\[') ?? markup + content + CLOSING[markup]);
LEAF.formula_block = (parent, {content, meta: {isHalf, source}}) => {
  const box = isHalf ? undefined : formulaBox(content, true);
  if (box) add(parent, 'p').append(box);
  else add(parent, 'p', 'raw', source);
};
