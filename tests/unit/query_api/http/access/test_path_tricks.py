"""What a request needs follows from its route: no spelling of a path gets past it, and no route is undecided."""

import pytest

from tests.unit.query_api.http.access.guarded import OTHER, READ, Guarded, bearer

TRICKS = [
    "/api/parcels%2EgetPlace?parcelId=A%201/2",
    "//api/parcels.getPlace?parcelId=A%201/2",
    "/api//parcels.getPlace?parcelId=A%201/2",
    "/api/./parcels.getPlace?parcelId=A%201/2",
    "/healthz/../api/parcels.getPlace?parcelId=A%201/2",
    "/api/Parcels.getPlace?parcelId=A%201/2",
    "/API/parcels.getplace?parcelId=A%201/2",
    "/api/parcels.getPlace/?parcelId=A%201/2",
    "/api/parcels.getPlace%00?parcelId=A%201/2",
    "/api/parcels.getPlace;x=1?parcelId=A%201/2",
    "/api/\uff50arcels.getPlace?parcelId=A%201/2",
    "/api/parcels%252EgetPlace?parcelId=A%201/2",
    "/api/read-models/parcels/records/A%201%2F2",
    "/api/read-models/parcels/records//A%201/2",
    "/api/read-models/%70arcels/records?partition=0",
    "/api/read-models/parcels%2Frecords%2FA",
    "/api/read-models/balance/../parcels/records?partition=0",
    "/api/read-models/balance%2F..%2Fparcels/records?partition=0",
    "/api/read-models/PARCELS/records?partition=0",
    "/api/read-models/parcels%20/records?partition=0",
    "/healthz%2F..%2Fapi%2Fstatus",
    "/page-files/../api/status",
    "/page-files/%2e%2e/api/status",
    "/sign-in/../api/status",
    "/explain?readModel=balance&readModel=parcels&key=A",
    "/explain?readModel=balance&key=A&%72eadModel=parcels",
    "/explain?readModel=parcels%00&key=A",
]


@pytest.mark.parametrize("path", TRICKS)
def test_no_spelling_of_a_path_gets_past_the_scope(guarded: Guarded, path: str) -> None:
    other = guarded.secret(READ, OTHER)

    for headers in ({}, bearer(other)):
        for method in ("GET", "HEAD", "OPTIONS"):
            answer = guarded.client.open(path, method=method, headers=headers)
            assert answer.status_code in {400, 401, 403, 404, 405, 308}
            assert b"depot" not in answer.data
            assert not headers or method == "OPTIONS" or answer.status_code != 200


def test_every_route_is_decided_and_only_these_are_open(guarded: Guarded) -> None:
    open_rules = set()
    for rule in guarded.node.app.url_map.iter_rules():
        path = rule.rule.replace("<key:key>", "k").replace("<name>", "parcels").replace("<file>", "page.css")
        method = "POST" if "POST" in (rule.methods or ()) else "GET"
        if guarded.client.open(path, method=method).status_code != 401:
            open_rules.add((rule.rule, method))

    assert open_rules == {
        ("/healthz", "GET"),
        ("/readyz", "GET"),
        ("/page-files/<file>", "GET"),
        ("/sign-in", "GET"),
        ("/sign-in", "POST"),
        ("/sign-out", "POST"),
    }
