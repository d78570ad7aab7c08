"""How long the page takes to open and to scroll a conversation."""

from tests.gateway.page.browser import Visitor, expect
from tests.gateway.page.long_logs import write_long_log
from tests.gateway.stage import GatewayStage

MAX_MOUNTED = 300
LONGEST_TASK = 200.0
"""Milliseconds: a page that is busy for longer feels stuck."""

SCROLL = """async (pixels) => {
  const log = document.querySelector(".log");
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const deadline = performance.now() + 20000;
  let mounted = 0;
  for (let times = 0; times < 150 && performance.now() < deadline; times += 1) {
    log.scrollTop += pixels;
    await frame();
    mounted = Math.max(mounted, document.querySelectorAll("article[data-seq]").length);
  }
  return mounted;
}"""

LOAD_VIEW = """() => import(
  document.querySelector("script").src.replace("main.js", "conversation/view.js"))"""
"""Loads the module of the view beforehand, as a browser has it from the second time on."""

OPENED = "[...document.querySelectorAll('article')].at(-1)?.textContent.includes('All files are')"


OPEN = """async (path) => {
  const link = document.querySelector(`a[href="${path}"]`);
  const began = performance.now();
  link.click();
  while (!(OPENED)) {
    if (performance.now() > began + 60000) throw new Error("it did not open");
    await new Promise((done) => requestAnimationFrame(done));
  }
  return performance.now() - began;
}""".replace("OPENED", OPENED)


async def write_conversation(stage: GatewayStage, events: int) -> str:
    store, folder = stage.gateway.store, stage.harness.folder / "store"
    return await write_long_log(store, folder, "anna", events)  # type: ignore[arg-type]


async def longest_task(visitor: Visitor) -> float:
    """Return the milliseconds of the longest task of the page's thread since the last call."""
    tasks: list[float] = await visitor.page.evaluate("longTasks.splice(0)")
    return max(tasks, default=0.0)


async def open_and_time(visitor: Visitor, name: str) -> float:
    """Open a conversation from the list, as people do; return the milliseconds to its end."""
    await visitor.goto("/")
    await expect(visitor, ".conversations li")
    await visitor.page.evaluate(LOAD_VIEW)
    await visitor.page.evaluate("longTasks.splice(0)")
    took = await visitor.page.evaluate(OPEN, f"/conversations/{name}")
    return float(took)


async def scroll(visitor: Visitor) -> float:
    """Scroll up and down again; return the longest task of the calmest of three times.

    What else runs on a machine makes a task longer, never shorter.
    """
    longest = []
    for _ in range(3):
        await longest_task(visitor)
        for pixels in (-900, 900):
            assert await visitor.page.evaluate(SCROLL, pixels) <= MAX_MOUNTED
        longest.append(await longest_task(visitor))
        if longest[-1] < LONGEST_TASK:
            break
    return min(longest)
