"""Grants of a user to others, for a conversation or a batch."""

from pydantic import ValidationError

from perdure.errors import Invalid
from perdure.storage import grants
from perdure.storage.grants import Access, Grant, Shareable
from perdure.storage.keys import check_user_id
from perdure.storage.store import Store


async def grant(store: Store, of: Shareable, user_id: str, access: Access) -> None:
    """Grant another user access to what exists and is the client's own. Raises Invalid."""
    _check(user_id)
    if user_id == of.owner:
        raise Invalid(f"The {of.kind} is {user_id}'s own: name another user.")
    await grants.save_grant(store, of, _make(user_id, access))


async def revoke(store: Store, of: Shareable, user_id: str) -> None:
    """Take the grant of a user back. Raises Invalid."""
    _check(user_id)
    await grants.delete_grant(store, of, user_id)


def _make(user_id: str, access: str) -> Grant:
    try:
        return Grant.model_validate({"user_id": user_id, "access": access})
    except ValidationError as error:
        raise Invalid(f"The access {access!r} is none: grant read or write.") from error


def _check(user_id: str) -> None:
    try:
        check_user_id(user_id)
    except ValueError as error:
        raise Invalid(str(error)) from error
