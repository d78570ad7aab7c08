import uuid

from perdure.client.ids import new_conversation_id


def test_ids_are_uuids_of_version_7_that_sort_by_age() -> None:
    ids = [new_conversation_id() for _ in range(100)]
    assert {uuid.UUID(identifier).version for identifier in ids} == {7}
    assert {uuid.UUID(identifier).variant for identifier in ids} == {uuid.RFC_4122}
    stamps = [identifier[:13] for identifier in ids]
    assert stamps == sorted(stamps)
    assert len(set(ids)) == 100
