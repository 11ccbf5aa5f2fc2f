// ---- Elements that are drawn again: what is as before stays the same node, with what the reader has selected or scrolled in it.
const drawnFrom = new WeakMap();  // what elements were made of whose inside is their own: {source}, or {language, code} to be painted
function redrawText(node, text) {
  let same = 0;
  while (same < node.length && node.data[same] === text[same]) ++same;
  if (same < Math.max(node.length, text.length)) node.replaceData(same, node.length - same, text.slice(same));
}
function redrawAttributes(old, fresh) {
  for (const {name, value} of fresh.attributes) {
    if (old.getAttribute(name) === value) continue;
    if (name === 'style') old.style.cssText = value;  // the page's policy allows no other way
    else old.setAttribute(name, value);
  }
  for (const {name} of [...old.attributes]) {
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}
// Makes `old` look like `fresh`, whose nodes it may take, and puts it in its place if they are of different kinds.
function redraw(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const [before, now] = [drawnFrom.get(old), drawnFrom.get(fresh)];
  if (old.nodeName !== fresh.nodeName || (before && before.source !== now?.source) || (!before && now)) {
    old.replaceWith(fresh);
  } else if (old.nodeType === Node.TEXT_NODE) {
    redrawText(old, fresh.data);
  } else if (now) {
    redrawAttributes(old, fresh);
    drawnFrom.set(old, now);
  } else if (!old.matches('button') || old.ariaLabel !== fresh.ariaLabel) {  // a button may say that it was pressed
    redrawAttributes(old, fresh);
    const children = [...fresh.childNodes];
    while (old.childNodes.length > children.length) old.lastChild.remove();
    children.forEach((child, i) => (i < old.childNodes.length ? redraw(old.childNodes[i], child) : old.append(child)));
  }
}
// Makes the children of `parent` from the one at `first` on look like `fresh`, elements of blocks, and paints their code.
function redrawBlocks(parent, first, fresh) {
  while (parent.children.length > first + fresh.length) parent.lastChild.remove();
  fresh.forEach((block, i) => {
    const old = parent.children[first + i];
    if (old) redraw(old, block);
    else parent.append(block);
    for (const element of parent.children[first + i].querySelectorAll('pre code')) {
      const {language, code} = drawnFrom.get(element);
      paint(element, language, code);
    }
  });
}
