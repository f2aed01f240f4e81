"""A small network of this machine's own: a hub, where database and clients are, and a namespace for each node.

Each node has two links to the hub, one on which it reaches the database, one on which clients and other nodes reach it.
What is cut stays up at both ends and loses what is sent, silently: the address of the other end is given a hardware
address that nobody has. So either direction can be cut alone. Nothing leaves these namespaces.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = "02:00:00:00:0b:ad"
DATABASE, CLIENTS = "db", "cl"
NETWORKS = {DATABASE: 231, CLIENTS: 232}
"""Second bytes of their addresses; the third is the node's, and the last 1 at the hub and 2 at the node."""


def why_not() -> str | None:
    """Why there can be no such network here; None where there can."""
    if not hasattr(os, "getuid") or os.getuid() != 0:
        return "only root can make network namespaces"
    if shutil.which("ip") is None:
        return "iproute2 is not installed: looked for ip"
    name = f"tried-{os.getpid()}"
    try:
        for step in (
            ["netns", "add", name],
            ["-n", name, "link", "add", "one", "type", "veth", "peer", "name", "two"],
        ):
            done = subprocess.run(["ip", *step], capture_output=True, text=True)
            if done.returncode:
                return f"ip {' '.join(step)}: {done.stderr.strip()}"
        return None
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """The namespaces, by a name and how many nodes they are for. It may be used by any process that is told these."""

    def __init__(self, name: str, nodes: int) -> None:
        self.name, self.nodes = name, nodes
        self.hub = f"{name}-hub"

    def node(self, number: int) -> str:
        """The namespace of a node, counted from 1."""
        return f"{self.name}-{number}"

    def address(self, network: str, number: int, at_hub: bool) -> str:
        """Of one end of a node's link."""
        return f"10.{NETWORKS[network]}.{number}.{1 if at_hub else 2}"

    def make(self) -> None:
        """Make all of them."""
        _ip("netns", "add", self.hub)
        _ip("-n", self.hub, "link", "set", "lo", "up")
        _ip("netns", "exec", self.hub, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for number in range(1, self.nodes + 1):
            node = self.node(number)
            _ip("netns", "add", node)
            _ip("-n", node, "link", "set", "lo", "up")
            for network in NETWORKS:
                near = f"{network}{number}"
                _ip(
                    "-n",
                    self.hub,
                    "link",
                    "add",
                    near,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    network,
                    "netns",
                    node,
                )
                for where, link, at_hub in ((self.hub, near, True), (node, network, False)):
                    _ip(
                        "-n", where, "addr", "add", f"{self.address(network, number, at_hub)}/24", "dev", link
                    )
                    _ip("-n", where, "link", "set", link, "up")
            _ip("-n", node, "route", "add", "default", "via", self.address(CLIENTS, number, True))

    def remove(self) -> None:
        """Remove what is there of them."""
        for name in (self.hub, *map(self.node, range(1, self.nodes + 1))):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def _ends(self, network: str, number: int) -> Iterator[tuple[str, str, str]]:
        """Namespace, link and the address at the other end: of what the node sends, and of what it is sent."""
        yield self.node(number), network, self.address(network, number, True)
        yield self.hub, f"{network}{number}", self.address(network, number, False)

    def cut(self, network: str, number: int, both: bool = True) -> None:
        """Lose what a node sends, and what it is sent."""
        for place, (where, link, other) in enumerate(self._ends(network, number)):
            if both or place == 0:
                _ip("-n", where, "neigh", "replace", other, "lladdr", NOBODY, "dev", link, "nud", "permanent")

    def heal(self, network: str, number: int) -> None:
        """Lose nothing any more."""
        for where, link, other in self._ends(network, number):
            subprocess.run(["ip", "-n", where, "neigh", "del", other, "dev", link], capture_output=True)


@contextmanager
def network(nodes: int) -> Iterator[Network]:
    """Namespaces for so many nodes, gone afterwards."""
    found = Network(f"bandits-{os.getpid()}", nodes)
    try:
        found.make()
        yield found
    finally:
        found.remove()
