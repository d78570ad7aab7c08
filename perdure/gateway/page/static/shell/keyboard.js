// The keys of the page: each view names its own, and `?` lists them all.

const NAMES = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" };

/** Return the name of a key for people. */
export function nameKey(key) {
  return NAMES[key] ?? key;
}

/** Tell whether what is typed belongs to a field. */
export function isTyping(target) {
  if (!(target instanceof Element)) return false;
  return target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select") || target.isContentEditable;
}

/**
 * The keys in force: those of the page and those of its view.
 *
 * A binding is `{keys, label, run, inFields}`; `keys` are values of `KeyboardEvent.key`, and
 * a binding with `inFields` also holds while a field has the focus.
 */
export class Keyboard {
  constructor(pageBindings) {
    this.pageBindings = pageBindings;
    this.viewBindings = [];
    document.addEventListener("keydown", (event) => this.#press(event));
  }

  /** Return all bindings by group, for the list of keys. */
  groups() {
    return [
      ["This view", this.viewBindings],
      ["Everywhere", this.pageBindings],
    ];
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    const typing = isTyping(event.target);
    const all = [...this.viewBindings, ...this.pageBindings];
    const binding = all.find(({ keys, inFields }) => keys.includes(event.key) && (!typing || inFields));
    if (!binding) return;
    if (binding.onlyOutside?.(event.target)) return;
    event.preventDefault();
    binding.run(event);
  }
}
