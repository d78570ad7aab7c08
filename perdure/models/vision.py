"""The check that a model can see the images of a message, before they are sent to it."""

from perdure.agent.spec import ModelSpec
from perdure.errors import Invalid
from perdure.models import price_table
from perdure.models.router import find_loader

VISION_HINT = (
    "Describe them in words, put their files into the workspace, or use a model with vision. If "
    "this one has it, say so: vision = true of the model (`-c model.vision=true`)."
)


def check_vision(model: ModelSpec) -> None:
    """Raise Invalid for a model that is sent no images: its `vision` says so, or litellm's list.

    The list is read where this runs, not on the worker. A scripted model, or one of a package, is
    sent everything.
    """
    if not has_vision(model):
        raise Invalid(f"{model.name} is not sent images, as it is not known to see.", VISION_HINT)


def has_vision(model: ModelSpec) -> bool:
    """Tell whether a model is sent images."""
    if model.vision is not None:
        return model.vision
    if find_loader(model.name) is not None:
        return True
    provider, slash, name = model.name.partition("/")
    entry = price_table.find_entry(provider, name) if slash else {}
    entry = entry or price_table.load_prices().get(model.name, {})
    return bool(entry.get("supports_vision"))
