// The parts of a conversation's view that are loaded after it.

import { Lazy } from "../shell/lazy.js";

export const ASKS = new Lazy(() => import("./asks.js"));
export const CALL_BODY = new Lazy(() => import("./call_body.js"));
export const DIALOGS = new Lazy(() => import("./dialogs.js"));
export const EVENT_ACTIONS = new Lazy(() => import("./event_actions.js"));
export const FILES = new Lazy(() => import("./files.js"));
export const TIMELINE = new Lazy(() => import("./timeline.js"));
