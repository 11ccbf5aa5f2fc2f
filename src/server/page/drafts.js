// ---- What is being written, by chat: the composer's text and files. It outlives a reload of the tab.
const DRAFTS = 'pagoda.drafts';  // the key in sessionStorage
const MAX_DRAFTS = 20;
const STORE_DRAFTS_AFTER_MS = 300;
const drafts = new Map();  // from a chat's id, or '' for one without turns, to {text, files}; the latest stands last
let storingDrafts = 0;  // the timer
let keepsDrafts = false;  // once the tab's chat is there
const draftKey = () => (chat.turns.length ? chat.id : '');

function setComposer(text, files) {
  $('input').value = text;
  attached = files;
  showAttached();
  resize();
}
// Takes what the composer has as the draft of the chat that is shown.
function keepDraft() {
  if (!keepsDrafts) return;
  drafts.delete(draftKey());
  if ($('input').value || attached.length) drafts.set(draftKey(), {text: $('input').value, files: attached});
  while (drafts.size > MAX_DRAFTS) drafts.delete(drafts.keys().next().value);
  clearTimeout(storingDrafts);
  storingDrafts = setTimeout(storeDrafts, STORE_DRAFTS_AFTER_MS);
}
function showDraft() {
  const {text, files} = drafts.get(draftKey()) ?? {text: '', files: []};
  setComposer(text, files);
}
// Leaves out the oldest drafts if there is no room for all.
function storeDrafts() {
  clearTimeout(storingDrafts);
  const all = [...drafts];
  while (!store('sessionStorage', DRAFTS, JSON.stringify({drafts: all})) && all.length) all.shift();
}
// The chat that is shown has its draft by another key now.
function moveDraft(key) {
  if (key === draftKey()) return;
  drafts.delete(key);
  keepDraft();
}
function dropDraft(key) {
  drafts.delete(key);
  storeDrafts();
}

{
  const kept = storedObject('sessionStorage', DRAFTS)?.drafts;
  for (const each of Array.isArray(kept) ? kept.slice(-MAX_DRAFTS) : []) {
    try {
      const [id, {text, files}] = each;
      if (typeof id === 'string' && typeof text === 'string') drafts.set(id, {text, files: checkedFiles(files, '')});
    } catch { /* it is none */ }
  }
}
addEventListener('pagehide', storeDrafts);
