"""What the tools of `make deploy-check` say, as JSON: it runs in their environment.

`python tool_reader.py chart` reads cases of values from stdin, and renders and validates each;
`compose FILE` parses a Compose file as its specification wants it; `queries` parses each query of a
list of PromQL.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = ("1.29", "1.37")
"""The oldest version whose schemas the tool still has, and the newest."""

OWN_KINDS = ("keda.sh", "monitoring.coreos.com")
"""Groups of kinds that Kubernetes itself does not know."""


def read_chart(cases: dict[str, Any]) -> dict[str, Any]:
    """Return the manifests of each case, or why its values were refused."""
    import helm_python  # type: ignore[import-not-found]

    answers: dict[str, Any] = {}
    with helm_python.Chart.load(str(DEPLOY / "helm" / "perdure")) as chart:
        for name, values in cases.items():
            try:
                texts = dict(chart.render(values, name="demo", namespace="prod"))
                notes = texts.pop("perdure/templates/NOTES.txt")
                answers[name] = {"manifests": _validate(texts.values()), "notes": notes}
            except helm_python.HelmError as error:
                answers[name] = {"refused": str(error)}
    return answers


def _validate(texts: Any) -> list[Any]:
    """Return the manifests in these texts. Raises a ValidationError for one that is none."""
    import kubernetes_validate  # type: ignore[import-not-found]
    import yaml  # type: ignore[import-untyped]

    manifests = [it for text in texts for it in yaml.safe_load_all(text) if it]
    for manifest in manifests:
        if manifest["apiVersion"].split("/")[0] not in OWN_KINDS:
            for version in KUBERNETES:
                kubernetes_validate.validate(manifest, version, strict=True)
    return manifests


def read_compose(path: Path) -> Any:
    """Return the services of a Compose file, with `x` for each variable."""
    import yaml
    from compose_spec import PyCompose  # type: ignore[import-not-found]

    merged = json.dumps(yaml.safe_load(path.read_text()))
    text = re.sub(r"\$\{\w+(?::[-?][^}]*)?\}", "x", merged)
    PyCompose.from_json(text)
    return json.loads(text)["services"]


def read_queries(queries: list[str]) -> list[str]:
    """Return the type of each query. Raises ValueError for one that is none."""
    import promql_parser  # type: ignore[import-not-found]

    return [type(promql_parser.parse(query)).__name__ for query in queries]


def main() -> None:
    match sys.argv[1:]:
        case ["chart"]:
            answer: Any = read_chart(json.load(sys.stdin))
        case ["compose", path]:
            answer = read_compose(Path(path))
        case _:
            answer = read_queries(json.load(sys.stdin))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
