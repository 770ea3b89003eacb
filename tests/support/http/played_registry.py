"""A schema registry whose replies a test sets."""

import json
from typing import Any

from tests.support.http.played_server import PlayedServer, Reply

SUBJECTS = "GET /subjects"


def record(name: str, *fields: dict[str, Any]) -> str:
    """Return the schema of a record."""
    return json.dumps({"type": "record", "name": name, "fields": fields})


def coded(status: int, code: int) -> Reply:
    """Return an error as a registry sends it."""
    return Reply(status, {"error_code": code, "message": "a message"})


def add_subject(server: PlayedServer, subject: str, *ids: int) -> None:
    """Add a subject with a version for each id."""
    listed = json.loads(server.replies.get(SUBJECTS, Reply(body="[]")).body)
    server.replies[SUBJECTS] = Reply(body=json.dumps([*listed, subject]))
    server.replies[f"GET /subjects/{subject}/versions"] = Reply(body=list(range(1, len(ids) + 1)))
    for number, schema_id in enumerate(ids, start=1):
        version = {"subject": subject, "version": number, "id": schema_id, "schema": "{}"}
        server.replies[f"GET /subjects/{subject}/versions/{number}"] = Reply(body=version)


def add_schema(server: PlayedServer, schema_id: int, text: str, **more: object) -> None:
    """Add the schema of an id. more: further members of the reply, such as its references."""
    server.replies[f"GET /schemas/ids/{schema_id}"] = Reply(body={"schema": text, **more})


def reference(name: str, subject: str) -> dict[str, object]:
    """Return a reference to the first version of a subject."""
    return {"name": name, "subject": subject, "version": 1}


def add_referenced(server: PlayedServer, subject: str, text: str, *references: dict[str, object]) -> None:
    """Add the first version of a subject, to which other schemas refer."""
    version = {"subject": subject, "version": 1, "id": 90, "schema": text, "references": references}
    server.replies[f"GET /subjects/{subject}/versions/1"] = Reply(body=version)
