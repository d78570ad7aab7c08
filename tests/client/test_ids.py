import uuid

from perdure.client.ids import new_conversation_id


def test_ids_are_uuids_of_version_7_that_sort_by_age() -> None:
    ids = [new_conversation_id() for _ in range(100)]
    assert {uuid.UUID(one).version for one in ids} == {7}
    assert {uuid.UUID(one).variant for one in ids} == {uuid.RFC_4122}
    stamps = [one[:13] for one in ids]
    assert stamps == sorted(stamps)
    assert len(set(ids)) == 100
