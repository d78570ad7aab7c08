"""How the page shows markdown, which may be hostile, terminal output, diffs, JSON, amounts."""

from typing import Any

import pytest

from tests.gateway.page.modules import Modules
from tests.gateway.page.stories import HOSTILE, PIXEL

pytestmark = pytest.mark.page

RENDER = """({ renderMarkdown }, text) => {
  const box = document.createElement("div");
  box.append(renderMarkdown(text));
  document.body.append(box);
  const nodes = [...box.querySelectorAll("*")];
  return {
    html: box.innerHTML,
    text: box.textContent,
    tags: [...new Set(nodes.map((node) => node.localName))].sort(),
    attributes: [...new Set(nodes.flatMap((node) => node.getAttributeNames()))].sort(),
    links: [...box.querySelectorAll("a[href]")].map((link) => link.href),
    rel: [...box.querySelectorAll("a[href]")].map((link) => `${link.target} ${link.rel}`),
    images: [...box.querySelectorAll("img")].map((image) => image.getAttribute("src")),
  };
}"""

HARMLESS_ATTRIBUTES = {
    *("align", "alt", "aria-label", "class", "href", "rel", "role", "src", "start", "tabindex"),
    *("target", "title"),
}


async def render(modules: Modules, text: str) -> dict[str, Any]:
    rendered: dict[str, Any] = await modules.call("text/markdown.js", RENDER, text)
    return rendered


async def test_hostile_markdown_runs_nothing_and_changes_nothing(modules: Modules) -> None:
    seen = await render(modules, HOSTILE)
    await modules.visitor.page.wait_for_timeout(300)
    assert await modules.visitor.page.evaluate("globalThis.hacked") is None
    forbidden = {"script", "style", "svg", "iframe", "form", "input", "object", "embed", "math"}
    assert not forbidden & set(seen["tags"])
    assert set(seen["attributes"]) <= HARMLESS_ATTRIBUTES
    assert all(link.startswith(("https://", "mailto:")) for link in seen["links"])
    assert seen["images"] == []
    assert "<script>window.hacked = 1</script>" in seen["text"]


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        " javascript:alert(1)",
        "java\tscript:alert(1)",
        "&#106;avascript:alert(1)",
        "javascript&colon;alert(1)",
        "data:text/html,<b>x</b>",
        "data:image/svg+xml,<svg/>",
        "vbscript:x",
        "file:///etc/passwd",
        "blob:https://example.org/x",
        "//example.org/x",
        "/v1/keys",
        "#main",
    ],
)
async def test_a_link_leads_to_the_web_and_to_mail_alone(modules: Modules, address: str) -> None:
    for text in (f"[x](<{address}>)", f"[x]: <{address}>\n\n[x]", f"<{address}>"):
        assert (await render(modules, text))["links"] == []


async def test_a_link_tells_its_target_nothing(modules: Modules) -> None:
    seen = await render(modules, "[a](https://example.org) <mailto:a@example.org>")
    assert seen["links"] == ["https://example.org/", "mailto:a@example.org"]
    assert set(seen["rel"]) == {"_blank noopener noreferrer nofollow"}


async def test_an_image_is_shown_only_if_the_text_holds_it(modules: Modules) -> None:
    svg = "data:image/svg+xml;base64,PHN2Zy8+"
    seen = await render(modules, f"![a]({PIXEL}) ![b]({svg}) ![c](https://example.org/c.png)")
    assert seen["images"] == [PIXEL]
    assert seen["links"] == ["https://example.org/c.png"]


async def test_markdown_has_tables_code_and_lists(modules: Modules) -> None:
    seen = await render(
        modules, "# T\n\n|a|b|\n|-|-|\n|1|2|\n\n- [x] d\n\n```py\nx\n```\n**b** `c`"
    )
    assert {"h1", "table", "th", "td", "li", "pre", "code", "strong"} <= set(seen["tags"])
    assert "☑" in seen["text"]


async def test_code_is_coloured_by_nodes_not_by_markup(modules: Modules) -> None:
    code = """async ({ highlightElement }) => {
      const code = document.createElement("code");
      code.textContent = "<b>x</b> = '<script>1</script>' # <img>";
      await highlightElement(code, "python");
      const coloured = code.querySelectorAll("span").length > 1;
      return [code.textContent, coloured, code.querySelector("b, img")];
    }"""
    text, coloured, markup = await modules.call("text/highlight.js", code)
    assert text == "<b>x</b> = '<script>1</script>' # <img>"
    assert coloured
    assert markup is None


@pytest.mark.parametrize(
    ("output", "parts"),
    [
        ("plain", [("plain", "")]),
        ("\x1b[31mred\x1b[0m rest", [("red", "fg-1"), (" rest", "")]),
        ("\x1b[1;92mok\x1b[22m\x1b[39m.", [("ok", "ansi-bold fg-10"), (".", "")]),
        ("\x1b[38;5;196mx", [("x", "fg-9")]),
        ("\x1b[38;2;0;200;0mx\x1b[48;5;4my", [("x", "fg-10"), ("y", "fg-10 bg-4")]),
        ("10%\r50%\r100%\nend", [("100%\nend", "")]),
        ("a\r\nb\r\n", [("a\nb\n", "")]),
        ("\x1b[2K\x1b[1Gx\x1b]0;title\x07y\x1b[?25l", [("x", ""), ("y", "")]),
    ],
)
async def test_terminal_output_has_its_colours_and_no_escapes(
    modules: Modules, output: str, parts: list[tuple[str, str]]
) -> None:
    code = (
        "({ parseAnsi }, output) => parseAnsi(output).map(({ text, classes }) => [text, classes])"
    )
    seen = await modules.call("text/ansi.js", code, output)
    assert [tuple(part) for part in seen] == parts


async def test_a_diff_shows_changes_with_a_little_around_them(modules: Modules) -> None:
    before = "".join(f"{number}\n" for number in range(20))
    after = before.replace("10\n", "ten\n")
    code = (
        "({ diffLines }, [before, after]) => diffLines(before, after).map((l) => l.sign + l.text)"
    )
    seen = await modules.call("text/diff.js", code, [before, after])
    assert seen == ["…", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13", "…"]


async def test_a_unified_diff_is_split_into_its_files(modules: Modules) -> None:
    diff = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"
        "diff --git a/b c.txt b/b c.txt\nnew file mode 100644\n--- /dev/null\n+++ b/b c.txt\n"
        "@@ -0,0 +1 @@\n+--- not a heading?\n"
    )
    code = "({ splitUnified }, diff) => splitUnified(diff)"
    seen = await modules.call("text/diff.js", code, diff)
    assert [file["path"] for file in seen] == ["a.py", "b c.txt"]
    assert [line["sign"] for line in seen[0]["lines"]] == ["@", "@", "@", "-", "+"]
    assert seen[1]["lines"][-1] == {"sign": "+", "text": "--- not a heading?"}


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ('[{"a":1,"b":"x"},{"a":2,"c":null}]', (["a", "b", "c"], 2)),
        ('{"name":"x","size":{"deep":1}}', (["key", "value"], 2)),
        ("[1,2,3]", None),
        ("{}", None),
        ("not json", None),
        ("[1,", None),
        ('"text"', None),
    ],
)
async def test_json_becomes_a_table_where_it_has_one(
    modules: Modules, text: str, table: tuple[list[str], int] | None
) -> None:
    code = """({ parseJson, tableOf }, text) => {
      const value = parseJson(text);
      const table = value && tableOf(value);
      return table && [table.columns, table.rows.length];
    }"""
    seen = await modules.call("text/json_value.js", code, text)
    assert (tuple(seen) if seen else None) == table


async def test_amounts_say_what_they_are(modules: Modules) -> None:
    code = """(usage) => [
      usage.formatCost({ cost: 0.0042 }), usage.formatCost({ cost: 1.5 }), usage.formatCost({}),
      usage.formatCost({ unpriced_tokens: 5 }), usage.formatCost({ cost: 2, unpriced_tokens: 5 }),
      usage.formatTokens(812), usage.formatTokens(12345), usage.formatTokens(4100000),
      usage.formatSeconds(0.42), usage.formatSeconds(200), usage.formatSeconds(7500),
      usage.formatAge("2026-03-01T09:00:00.000000", Date.UTC(2026, 2, 1, 9, 5)),
      usage.formatAge("2026-03-01T09:00:00+00:00", Date.UTC(2026, 2, 1, 12, 0)),
      usage.formatAge(null), usage.secondsBetween("2026-03-01T09:00:00.5", "2026-03-01T09:00:02"),
    ]"""
    assert await modules.call("log/usage.js", code) == [
        *("$0.0042", "$1.50", "$0", "unknown", "$2.00 and more"),
        *("812", "12.3k", "4.1M", "0.4 s", "3 min 20 s", "2 h 5 min", "5 min ago", "3 h ago"),
        *("", 1.5),
    ]


async def test_the_list_is_sorted_by_activity_and_searched_by_words(modules: Modules) -> None:
    code = """({ sortByActivity, matches }, items) => [
      sortByActivity(items).map((item) => item.id),
      items.filter((item) => matches(item, "BUG openai")).map((item) => item.id),
    ]"""
    items = [
        {"id": "a", "updated": "2026-03-01T09:00:00+00:00", "status": {"title": "A bug"}},
        {
            "id": "b",
            "updated": "2026-03-02T09:00:00+00:00",
            "status": {"title": "The bug", "model": "openai/gpt-5", "tags": ["x"]},
        },
        {"id": "c", "created": "2026-03-03T09:00:00+00:00", "status": {"title": None}},
    ]
    assert await modules.call("list/model.js", code, items) == [["c", "b", "a"], ["b"]]


async def test_addresses_lead_to_their_views(modules: Modules) -> None:
    code = """({ matchRoute, conversationPath, parseSeqHash }, paths) => [
      paths.map((path) => matchRoute(path)?.view ?? null),
      conversationPath("id", "ada@example.org", 42), parseSeqHash("#seq-42"), parseSeqHash("#x"),
    ]"""
    paths = ["/", "/new", "/conversations/x", "/batches", "/batches/b", "/keys", "/v1/me"]
    assert await modules.call("shell/router.js", code, paths) == [
        ["list", "new", "conversation", "batches", "batch", "keys", None],
        "/conversations/id?owner=ada%40example.org#seq-42",
        42,
        None,
    ]


async def test_the_link_to_a_workflow_has_its_id(modules: Modules) -> None:
    code = """({ workflowAddress }) => [
      workflowAddress("http://ui/namespaces/n/workflows", { owner: "local", id: "x" }),
      workflowAddress("http://ui/namespaces/n/workflows", { owner: "anna", id: "x" }),
      workflowAddress("javascript:alert(1)//", { owner: "anna", id: "x" }),
      workflowAddress("", { owner: "anna", id: "x" }),
    ]"""
    assert await modules.call("wire/workflows.js", code) == [
        "http://ui/namespaces/n/workflows/conv-x",
        "http://ui/namespaces/n/workflows/conv-anna%3Ax",
        None,
        None,
    ]
