"""The processes in the chart's containers: they exist, start with valid settings, and reach each other."""

import pytest

from include.nodes.node_url import PeerRule
from include.settings import PREFIX, VARIABLES, Settings
from include.settings.variables import FILE
from query_api.http.request_checks import AllowedHosts
from stack.components import query_nodes
from stack.lifecycle import component_modules
from tests.support.kubernetes.chart_objects import (
    POD,
    all_containers,
    of_kind,
    pod,
    pods,
    settings_of,
    variables,
)
from tests.support.kubernetes.helm import rendered, value_sets

SETS = value_sets()
SERVICE = "shop-foldlake"
KNOWN = {f"{PREFIX}{variable.upper()}" for variable in VARIABLES}
# Folders in the containers.
CERTIFICATES = {
    f"{PREFIX}{name.upper()}" for name, (group, _) in VARIABLES.items() if group in {"tls", "node_tls"}
}
PEERS, CALLERS = "/run/foldlake-peers", "/run/foldlake-callers"


def test_every_command_is_a_process_of_the_stack() -> None:
    modules = component_modules()
    names = set(modules) | {p.name for module in modules.values() for p in module.processes(Settings.of())}

    commands = [
        container["args"]
        for _, spec in pods("default")
        for container in all_containers(spec)
        if "args" in container
    ]

    assert commands[:2] == [["query_nodes"], ["--only-prepare", "airflow"]]
    assert {command[-1] for command in commands} - names == set()
    # All of Airflow, and the stream supervisor: one container each.
    running = {
        process.name for name in ("airflow", "stream") for process in modules[name].processes(Settings.of())
    }
    assert {container["args"][0] for container in pod("default", "writer")["containers"]} == running


@pytest.mark.parametrize("name", SETS)
def test_every_variable_is_a_setting_with_a_valid_value(name: str) -> None:
    for part in ("node", "writer"):
        for container in pod(name, part)["containers"]:
            found = {one for one in variables(name, container) if one.startswith(PREFIX)}

            assert {one for one in found if one not in KNOWN and one.removesuffix(FILE) not in KNOWN} == set()
            assert settings_of(name, container).kafka.bootstrap_servers == "kafka:9092"


@pytest.mark.parametrize("name", SETS)
def test_nodes_find_and_accept_each_other(name: str) -> None:
    (node,) = pod(name, "node")["containers"]
    settings = settings_of(name, node)

    assert query_nodes.node_settings(settings) == [settings]
    query_nodes.check(settings)
    assert settings.node.name == POD["POD_NAME"]
    other = settings.advertised_url.replace("node-1", "node-7")
    scheme, port = ("http", 5051) if name == "open" else ("https", 5151)
    assert other == f"{scheme}://{SERVICE}-node-7.{SERVICE}-nodes.prod.svc:{port}"
    for part in ("node", "writer"):
        rule = PeerRule.of_client(settings_of(name, pod(name, part)["containers"][0]))
        assert rule.refusal(other) is None
        assert rule.refusal("http://node.example:5051") is not None


def test_nodes_accept_clients_probes_and_the_ingress() -> None:
    (node,) = pod("ingress", "node")["containers"]
    accepts = AllowedHosts(settings_of("ingress", node)).accepts
    clients = [SERVICE, f"{SERVICE}.prod", f"{SERVICE}.prod.svc", f"{SERVICE}.prod.svc.cluster.local"]

    assert all(accepts(f"{host}:5051") for host in clients)
    assert accepts(f"{POD['POD_IP']}:5051")
    assert accepts("foldlake.example")
    assert accepts("lookups.example")
    assert not accepts("attacker.example")
    assert settings_of("ingress", node).reports_base_url == "https://foldlake.example"


def certificate_files(name: str, part: str) -> set[str]:
    """Return the files of certificates in a pod's containers: those of the volumes, which the variables name."""
    spec = pod(name, part)
    secrets = {volume["name"]: volume["secret"] for volume in spec["volumes"] if "secret" in volume}
    (first, *others) = (
        {value for key, value in variables(name, container).items() if key in CERTIFICATES}
        for container in spec["containers"]
    )
    assert all(other == first for other in others)
    for mount in spec["containers"][0]["volumeMounts"]:
        if mount["mountPath"] == PEERS:
            items = secrets[mount["name"]]["items"]
            assert {f"{PEERS}/{item['path']}" for item in items} == {
                one for one in first if one.startswith(PEERS)
            }
    return first


def test_nodes_and_jobs_have_their_own_certificates_and_no_other_keys() -> None:
    names = {"node": "nodes", "writer": "jobs"}
    for part, name in names.items():
        own = {f"{PEERS}/{file}" for file in ("ca.pem", f"{name}.pem", f"{name}-key.pem")}
        callers = {f"{CALLERS}/tls.crt", f"{CALLERS}/tls.key"} if part == "node" else set()
        assert certificate_files("default", part) == own
        assert certificate_files("ingress", part) == own | callers
        assert certificate_files("open", part) == set()


def test_with_a_certificate_for_callers_probes_use_tls() -> None:
    schemes = {
        name: {
            probe["httpGet"]["scheme"]
            for kind, probe in pod(name, "node")["containers"][0].items()
            if kind.endswith("Probe")
        }
        for name in ("default", "ingress")
    }

    assert schemes == {"default": {"HTTP"}, "ingress": {"HTTPS"}}


def test_only_pods_of_the_release_reach_the_listener_for_nodes() -> None:
    (rules,) = (
        policy["spec"]["ingress"]
        for name, policy in of_kind("monitoring", "NetworkPolicy").items()
        if name.endswith("node")
    )
    allowed = {port["port"]: rule["from"] for rule in rules for port in rule["ports"]}

    assert [list(one) for one in allowed[5151]] == [["podSelector"]]
    assert len(allowed[5051]) == 2


def test_secrets_are_files_and_nodes_get_none_of_airflows() -> None:
    found = rendered("default", "--set=secrets.keys.FOLDLAKE_REDIS_URL=redis")
    paths = {}
    for part in ("node", "writer"):
        (spec,) = (
            one["spec"]["template"]["spec"]
            for one in found
            if one["kind"] == "StatefulSet" and one["metadata"]["name"] == f"{SERVICE}-{part}"
        )
        (secret,) = (volume["secret"] for volume in spec["volumes"] if volume["name"] == "secrets")
        assert secret["secretName"] == "foldlake"
        paths[part] = {item["key"]: item["path"] for item in secret["items"]}
        files = {
            one["value"]
            for one in spec["containers"][0]["env"]
            if one["name"].endswith(FILE) and one["name"] not in KNOWN
        }
        assert files == {f"/run/foldlake/{path}" for path in paths[part].values()}

    redis, database = (
        {"redis": "FOLDLAKE_REDIS_URL"},
        {"airflow-database": "FOLDLAKE_AIRFLOW_DATABASE_PASSWORD"},
    )
    assert paths == {"node": redis, "writer": redis | database}
