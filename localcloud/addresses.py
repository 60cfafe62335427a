"""Addresses on loopback."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass
from typing import Self

# Below what Linux and macOS hand out for outgoing connections (32768 and 49152 upwards), so that no connection can
# take a port between its choice and the start of its server.
SERVER_PORTS = range(20000, 32000)


@dataclass(frozen=True)
class Loopback:
    """A port on 127.0.0.1."""

    port: int
    host: str = "127.0.0.1"

    @classmethod
    def free(cls) -> Self:
        """Choose a port that nobody listens on now, at random, so that two clouds that start together hardly meet."""
        while True:
            port = random.SystemRandom().choice(SERVER_PORTS)
            with socket.socket() as candidate:
                try:
                    candidate.bind((cls.host, port))
                except OSError:
                    continue
                return cls(port)

    @property
    def authority(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def http(self) -> str:
        return f"http://{self.authority}"

    @property
    def https(self) -> str:
        return f"https://{self.authority}"
