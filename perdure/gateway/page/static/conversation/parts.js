// The parts of a conversation's view that are loaded after it.

import { Lazy } from "../shell/lazy.js";

export const CALL_BODY = new Lazy(() => import("./call_body.js"));
export const DIALOGS = new Lazy(() => import("./dialogs.js"));
export const FILES = new Lazy(() => import("./files.js"));
export const TIMELINE = new Lazy(() => import("./timeline.js"));
