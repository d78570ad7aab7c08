// Modules that a view needs only for some acts: loaded when the page is at rest, or when needed.

/** A module that is loaded at its first use, or by `preload`. */
export class Lazy {
  constructor(load) {
    this.load = load;
    this.module = null;
    this.promise = null;
  }

  /** Return a promise of the module; a load that failed is tried again at the next use. */
  get() {
    this.promise ??= this.load().then(
      (module) => (this.module = module),
      (error) => {
        this.promise = null;
        throw error;
      },
    );
    return this.promise;
  }

  /** Return the module if it is there; else load it, and call `loaded` then. */
  now(loaded) {
    if (!this.module) this.get().then(loaded, () => {});
    return this.module;
  }
}

/** Load modules while nothing else is to do, so that they are there when the network is not. */
export function preload(...lazies) {
  const idle = globalThis.requestIdleCallback ?? ((run) => setTimeout(run, 500));
  idle(() => lazies.forEach((lazy) => lazy.get().catch(() => {})));
}
