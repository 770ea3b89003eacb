"""The JSON form of a position and of a binding, as stores on disk and in a server keep them."""

import json

from include.position import Offsets
from include.unknown_fields import ignore_unknown_fields
from query_api.store.base import Binding, ChangelogPosition


def dump_position(position: ChangelogPosition) -> bytes:
    """Serialize a position."""
    fields = {
        "next_offset": position.next_offset,
        "as_of": position.as_of,
        "folded": position.folded.newest(),
    }
    boot = {"boot_id": position.boot_id, "as_of_boot_s": position.as_of_boot_s} if position.boot_id else {}
    return json.dumps(fields | boot).encode()


def load_position(stored: bytes) -> ChangelogPosition:
    """Deserialize a position; raises ValueError for invalid bytes."""
    fields = json.loads(stored)
    folded = Offsets.from_newest_json(fields["folded"])
    # The fields of the boot clock are not in a store of an earlier release.
    boot = (fields.get("boot_id", ""), fields.get("as_of_boot_s", 0.0))
    return ChangelogPosition(fields["next_offset"], fields["as_of"], folded, *boot)


def dump_binding(binding: Binding) -> bytes:
    """Serialize a binding."""
    return json.dumps(
        {"cluster_id": binding.cluster_id, "topic": binding.topic, "topic_id": binding.topic_id}
    ).encode()


def load_binding(stored: bytes) -> Binding:
    """Deserialize a binding; raises ValueError, KeyError or TypeError for invalid bytes."""
    return Binding(**ignore_unknown_fields(Binding, json.loads(stored)))
