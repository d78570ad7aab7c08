"""Paths that lead to Anna's things or out of a folder, where somebody reads them differently."""

from collections.abc import Iterator

from tests.gateway.security.attacks.attack import BENS_KEY, Attack

CONVERSATION = "/v1/conversations/{id}"

TRICKS = (
    f"{CONVERSATION}%2f..%2f..%2fme",
    "/v1/conversations/..%2f..%2fusers%2fanna",
    "/v1/conversations/%2e%2e/%2e%2e/users/anna",
    "/v1/conversations/../../users/anna",
    f"/{CONVERSATION}",
    "/v1//conversations/{id}",
    "/v1/./conversations/{id}",
    f"{CONVERSATION}/",
    f"{CONVERSATION}%00",
    f"{CONVERSATION}%0d%0aSet-Cookie:%20x=y",
    f"{CONVERSATION};x=1",
    "/V1/CONVERSATIONS/{id}",
    f"{CONVERSATION}/files/plan.txt",
    f"{CONVERSATION}/files/..%2f..%2f{{id}}%2fplan.txt",
    f"{CONVERSATION}/files/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    f"{CONVERSATION}/files//etc/passwd",
    f"{CONVERSATION}/files/....//....//etc/passwd",
    f"{CONVERSATION}/files/%c0%ae%c0%ae/etc/passwd",
    f"{CONVERSATION}/files/plan.txt%00.png",
    f"{CONVERSATION}/files/C:%5cwindows%5cwin.ini",
    f"{CONVERSATION}/blobs/..%2f..%2fbase_state.json",
    f"{CONVERSATION}/blobs/%2e%2e",
    f"{CONVERSATION}?owner=anna",
    f"{CONVERSATION}?owner=ANNA",
    f"{CONVERSATION}?owner=anna%00",
    f"{CONVERSATION}?owner=..%2fanna",
    f"{CONVERSATION}?owner=ben&owner=anna",
    f"{CONVERSATION}/export?format=..%2f..%2fetc%2fpasswd",
    "/v1/batches/..%2f..%2fanna%2fbatches%2f{batch}",
    "/v1/batches/{batch}",
    "/v1/batches/{batch}%00",
    "/v1/batches/..",
    "/v1/keys/..%2f{annas_key_id}",
    "/page/..%2f..%2fserve.py",
    "/page/x/..%2f..%2f..%2fetc%2fpasswd",
    "/page/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/%00",
    "/%",
    "/%zz",
    "/v1/me%2f..%2f..%2fopenapi.json",
    "http://evil.example/v1/conversations/{id}",
)


def attacks() -> Iterator[Attack]:
    for trick in TRICKS:
        yield Attack(f"the path {trick}", trick, headers=BENS_KEY)
    for method in ("DELETE", "PATCH", "PUT", "POST"):
        yield Attack(f"{method} with two slashes", f"/{CONVERSATION}", method, BENS_KEY, b"{}")
