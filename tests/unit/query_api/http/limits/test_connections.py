"""What the kernel counts of a connection, and the connections of a client."""

import socket
import time

from query_api.http.limits.body_deadline import CLOCK_MS
from query_api.http.limits.connections import TcpInfo, connections_of

PAUSE_S = 0.1


def test_bytes_and_times_of_a_connection() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as served,
    ):
        client.sendall(b"12345")
        assert served.recv(16) == b"12345"
        time.sleep(PAUSE_S)
        served.sendall(b"123")
        info = TcpInfo.of(served)
        found = {address for _, address in connections_of({"127.0.0.1"})}
        addresses = served.getpeername(), client.getpeername()

    assert (info.bytes_received, info.bytes_sent) == (5, 3)
    assert info.last_data_recv - info.last_data_sent >= PAUSE_S * 1000 - CLOCK_MS
    assert set(addresses) <= found
    assert list(connections_of({"192.0.2.1"})) == []
