"""The paths of each version's checkpoints, and the offsets in those on a file system of this machine."""

import json
from pathlib import Path

from include.position import Offsets


def query_name(model_name: str, version: int) -> str:
    """Return the name of a version's query, which is also its checkpoint's path below the root."""
    return f"{model_name}/v{version}"


def checkpoint_path(checkpoints: str, model_name: str, version: int) -> str:
    """Return the checkpoint of a version's query: a local path, or a URI."""
    return f"{checkpoints}/{query_name(model_name, version)}"


def fold_rule_path(checkpoint: str) -> str:
    """Return the file that records the fold with which a checkpoint's state was built.

    It is beside the checkpoint, not in it, because a checkpoint without a committed batch is removed as a whole.
    """
    return f"{checkpoint}.fold"


def fold_sums_path(checkpoint: str) -> str:
    """Return the file beside a checkpoint that records how its state has sums; without it, an earlier release made the state."""
    return f"{checkpoint}.sums"


def log_note_path(checkpoint: str) -> str:
    """Return the file beside a checkpoint that records what the query's topics contained at a commit."""
    return f"{checkpoint}.log"


def compaction_checkpoint(checkpoints: str, model_name: str, version: int) -> str:
    """Return the folder of compaction's checkpoints for a version: one for each time that the version became live."""
    return f"{checkpoints}/compaction/{query_name(model_name, version)}"


def emission_query_name(emission: str, version: int) -> str:
    """Return the name of an emission's query for a version, which is also its checkpoint's path below the root."""
    return f"emission/{emission}/v{version}"


def handover_path(checkpoint: str) -> str:
    """Return the file beside a checkpoint that records when its version last took over the topic of an emission's consumers."""
    return f"{checkpoint}.handover"


def writer_path(checkpoint: str) -> str:
    """Return the file beside the notes on an emission's consumers' topic that records which source topic its writer folds."""
    return f"{checkpoint}.writer"


def written_note_path(checkpoint: str, source_topic: str = "") -> str:
    """Return the file beside the checkpoint of a route or an emission that records which of its outputs are written.

    source_topic: if the output topic has records of several source topics, each of which has a note; empty for the first one.
    """
    return f"{checkpoint}.{source_topic}.written" if source_topic else f"{checkpoint}.written"


def key_rule_path(checkpoint: str) -> str:
    """Return the file beside the checkpoint of a read model's derived route that records which events it writes, under which key."""
    return f"{checkpoint}.key"


def state_rule_path(checkpoint: str) -> str:
    """Return the file beside the checkpoint of a flow with a state that records the state's rule and its number of shuffle tasks."""
    return f"{checkpoint}.state"


def committed_offsets(checkpoint: str, topic: str) -> Offsets:
    """Return partition -> offset of the first record that a query has not processed; empty before the first committed batch.

    checkpoint: a path. Spark writes `offsets/<batch>` when it plans a batch (third line: the end offsets of the source, as JSON) and
    `commits/<batch>` when the batch is done.
    """
    folder = Path(checkpoint.removeprefix("file://"))
    batches = [int(path.name) for path in folder.glob("commits/*") if path.name.isdigit()]
    if not batches:
        return Offsets()
    text = (folder / "offsets" / str(max(batches))).read_text(encoding="utf-8").splitlines()[2]
    by_topic: dict[str, dict[str, int]] = json.loads(text)
    return Offsets.from_json(by_topic.get(topic, {}))
