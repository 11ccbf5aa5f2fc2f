// ---- An answer on the page.
// Adds buttons below an answer, and `note` in words. `i` is the answer's place among the turns, if it has one.
function addFoot(view, {content, note, isLast, i}) {
  const foot = make('div', 'foot');
  if (content) foot.append(copyButton(() => content));
  if (isLast && i !== undefined) foot.append(linkButton('passing', 'Continue', () => goOn(view, i)));
  if (isLast || content) foot.append(linkButton(content ? 'again' : 'again passing', 'Try again', () => tryAgain(view, i)));
  const earlier = isLast && !content ? newestFrom(chat.turns, chat.at) : chat.at;
  if (earlier !== chat.at) foot.append(linkButton('passing', 'Earlier answer', () => switchTo(earlier)));
  if (i !== undefined) foot.append(deleteButton(i), ...branchArrows(i));
  if (note) foot.append(make('span', 'facts', note));
  view.append(foot);
}
const KEEP_EVERY_MS = 2000;
class AnswerView {
  // `turn` is the answer that goes on, or undefined for a new one.
  constructor(view, asked, turn) {
    this.view = view;
    this.asked = asked;
    this.text = view.querySelector('.text');
    this.text.classList.add('waiting');
    this.text.replaceChildren();
    this.markdown = new MarkdownView(this.text);
    this.turn = turn ?? {role: 'assistant', content: ''};  // of the conversation from its first word on
    this.turn.note = 'interrupted';
    this.markdown.show(this.turn.content, true);
    this.isLonger = !turn;
    this.calls = new Map();  // by their index in the answer
    this.start = performance.now();
    this.kept = this.start;
  }
  add(event) {
    const now = performance.now();
    const choice = event.choices[0];
    if (event.usage) {
      this.tokens = event.usage.completion_tokens;
      this.turn.tokens = event.usage.total_tokens;
    }
    if (choice?.finish_reason) this.reason = choice.finish_reason;
    if (!choice) return;
    this.first ??= now;
    this.last = now;
    if (choice.delta.reasoning_content) this.think(choice.delta.reasoning_content);
    for (const part of choice.delta.tool_calls ?? []) this.call(part);
    const words = choice.delta.content || '';
    if (words && !this.turn.content) putTurn(this.asked, this.turn);
    this.turn.content += words;
    this.isLonger ||= !!words;
    if (now - this.kept > KEEP_EVERY_MS) {
      this.kept = now;
      keep(this.asked);
    }
    this.frame ??= requestAnimationFrame(() => this.draw(true));
  }
  // Thoughts and calls of tools are shown folded, and are no part of the conversation.
  think(words) {
    this.thought ??= this.addFolded('Thoughts');
    this.thought.words.textContent += words;
  }
  // `part` has more of one call's name and arguments. Nothing is run.
  call({index, function: {name = '', arguments: more = ''} = {}}) {
    if (!this.calls.has(index)) this.calls.set(index, this.addFolded('Call of '));
    const {summary, words} = this.calls.get(index);
    summary.textContent += name ?? '';
    words.textContent += more ?? '';
  }
  addFolded(title) {
    const parts = makeFolded(title);
    parts.words.className = 'words';
    this.text.before(parts.folded);
    return parts;
  }
  draw(open) {
    this.frame = undefined;
    if (this.turn.content) this.text.classList.remove('waiting');
    this.markdown.show(this.turn.content, open);
    if (this.asked === chat) showContext(this.turn.tokens);
  }
  finish(remark) {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.text.classList.remove('waiting');
    this.draw(false);
    const facts = this.facts();
    if (remark) facts.push(remark);
    this.turn.note = facts.join(' · ');
    if (this.asked !== chat) return;  // another chat is shown now
    addFoot(this.view, {content: this.turn.content, note: this.turn.note, isLast: true, i: this.turn.content ? this.asked.at : undefined});
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
    if (!remark && !this.turn.content) remark = this.calls.size ? 'this page runs no tools' : 'the answer is empty';
    if (!remark && !this.isLonger) remark = 'nothing follows';
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
      trouble.append(linkButton('passing', 'Ask in a new chat', takeToNewChat));
    }
    this.finish(this.turn.content ? 'interrupted' : '');
    this.text.after(trouble);
  }
}
