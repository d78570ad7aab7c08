// The keys of a conversation.

import { CATEGORIES } from "../log/fold.js";

/** Return the bindings of a view. */
export function conversationKeys(view) {
  const { steering, events } = view;
  const onRow = (act) => () => view.selectedRow && act(view.selectedRow);
  return [
    { keys: ["j", "ArrowDown"], label: "Next event", run: () => view.move(1) },
    { keys: ["k", "ArrowUp"], label: "Previous event", run: () => view.move(-1) },
    { keys: ["Home"], label: "First event", run: () => view.toStart() },
    { keys: ["End"], label: "Newest event, and follow", run: () => view.toEnd() },
    { keys: ["o"], label: "Unfold or fold the call", run: onRow((row) => view.setOpened(row.seq, !view.opened.has(row.seq))) },
    { keys: ["e"], label: "Unfold or fold all calls", run: () => view.toggleAll() },
    { keys: ["m"], label: "Write a message", run: steering.answer },
    { keys: ["a"], label: "Approve, or answer, what waits", run: () => view.canWrite && steering.respondToAll(true) },
    { keys: ["r"], label: "Reject what waits, with a reason", run: () => view.canWrite && steering.respondToAll(false) },
    { keys: ["u"], label: "Resume", run: () => view.canWrite && steering.resume() },
    { keys: ["p"], label: "Pause", run: () => view.canWrite && steering.pause() },
    { keys: ["i"], label: "Interrupt", run: () => view.canWrite && steering.interrupt() },
    { keys: ["c"], label: "Close", run: () => view.canWrite && steering.close() },
    { keys: ["O"], label: "Reopen", run: () => view.canWrite && steering.reopen() },
    { keys: ["q"], label: "Ask beside", run: () => view.canWrite && steering.ask() },
    { keys: ["d"], label: "Download", run: () => steering.download() },
    { keys: ["s"], label: "Share", run: () => view.isOwner && steering.share() },
    { keys: ["t"], label: "Timeline", run: () => steering.openTimeline() },
    { keys: ["w"], label: "Files of the workspace", run: () => steering.openFiles() },
    { keys: [","], label: "All else that can be done", run: () => steering.openMore() },
    { keys: ["."], label: "What can be done with the event", run: onRow((row) => events.openMenu(row)) },
    { keys: ["f"], label: "Fork from the event", run: onRow((row) => view.canFork && events.fork(row)) },
    { keys: ["R"], label: "Retry from the event", run: onRow((row) => view.canFork && events.retry(row)) },
    { keys: ["x"], label: "Raw JSON of the event", run: onRow(events.raw) },
    { keys: ["y"], label: "Copy a link to the event", run: onRow(events.link) },
    ...CATEGORIES.map(([category, label], index) => ({
      keys: [String(index + 1)],
      label: `Show or hide: ${label.toLowerCase()}`,
      run: () => view.toggleCategory(category),
    })),
  ];
}
