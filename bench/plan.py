"""Which runs a comparison has: every shape, of every checkout, on sides that are started once."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from bench.rounds import BEFORE
from bench.servers import Servers
from bench.shapes import Shape
from bench.sides import Side, Tree, start_side

Sides: TypeAlias = Mapping[tuple[Tree, bool], Side]
"""By checkout, and whether they are on S3."""

T = TypeVar("T")


@contextlib.asynccontextmanager
async def start_sides(
    servers: Servers, trees: Sequence[Tree], shapes: Sequence[Shape], workers: int = 1
) -> AsyncIterator[Sides]:
    """Start each checkout with each store that the shapes need."""
    stores = sorted({shape.on_s3 for shape in shapes})
    async with contextlib.AsyncExitStack() as stack:
        yield {
            (tree, on_s3): await stack.enter_async_context(
                start_side(servers, tree, on_s3, workers)
            )
            for tree in trees
            for on_s3 in stores
        }


def plan_runs(
    sides: Sides, shapes: Sequence[Shape], measure: Callable[[Side, Shape], Awaitable[T]]
) -> dict[str, Callable[[], Awaitable[T]]]:
    """Return the runs of a round by name; the checkouts of a shape follow each other."""
    trees = list(dict.fromkeys(tree for tree, _ in sides))
    return {
        shape.name + (BEFORE if tree.name == "before" else ""): partial(
            measure, sides[tree, shape.on_s3], shape
        )
        for shape in shapes
        for tree in trees
    }
