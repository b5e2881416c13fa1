"""Clusters: real keys, certificates and folders, made without a network; and views of some."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import define, field
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gossamer.node.monitoring.members import FIGURES, SECTORS, Report, cluster_view
from gossamer.node.security.certificates import PeerCertificate, issue_certificate
from gossamer.node.security.cluster import (
    ClusterFolder,
    Membership,
    make_cluster,
    open_membership,
    save_membership,
)
from gossamer.node.security.event_keys import EventKey, make_event_key
from gossamer.node.security.identity import Identity, save_identity
from gossamer.node.security.joining.admission import Registrar, open_registrar, record_certificate
from gossamer.node.store import Store

DAY_S = 86_400.0


@define
class MadeCluster:
    """A cluster and the peer that holds its authority."""

    folder: Path  # the folder of that peer; those of others are beside it
    now: float = field(factory=time.time)  # when it was made, Unix seconds
    # Of its key pairs, so that members have the same places on the ring in every run.
    draws: random.Random = field(init=False)
    registrar: Registrar = field(init=False)
    store: Store = field(init=False)  # tokens and certificates that were given out

    def __attrs_post_init__(self) -> None:
        self.draws = random.Random(self.folder.name)
        first = make_cluster(self.folder, "desk", "first", self.now, new_identity=self.new_identity)
        self.registrar = open_registrar(first)
        # Not the first peer's state file, which the peer itself has open while it runs here.
        self.store = Store(self.folder.with_name(f"{self.folder.name}-issued.db"))
        record_certificate(self.store, first.certificate)

    @property
    def first(self) -> Membership:
        return self.registrar.member

    def new_identity(self) -> Identity:
        return Identity(Ed25519PrivateKey.from_private_bytes(self.draws.randbytes(32)))

    def certify(
        self, identity: Identity, name: str = "peer", lifetime_s: float = 30 * DAY_S
    ) -> PeerCertificate:
        issuer = (self.first.authority, self.registrar.signer)
        subject = (identity.public_key, name)
        certificate = issue_certificate(*issuer, *subject, self.now, lifetime_s)
        record_certificate(self.store, certificate)
        return certificate

    def admit(self, name: str, lifetime_s: float = 30 * DAY_S) -> Membership:
        folder = ClusterFolder(self.folder.parent / f"{self.folder.name}-{name}")
        folder.path.mkdir()
        identity = self.new_identity()
        save_identity(identity, folder.peer_key)
        certificate = self.certify(identity, name, lifetime_s)
        save_membership(folder, self.first.authority, certificate, self.registrar.revoked())
        return open_membership(folder.path)


@lru_cache
def event_key(_number: int) -> EventKey:
    """A key for events, in one process the same for the same number."""
    return make_event_key()


@contextmanager
def made_cluster(folder: Path) -> Iterator[MadeCluster]:
    cluster = MadeCluster(folder)
    try:
        yield cluster
    finally:
        cluster.store.close()


def member(number: int, state: str = "alive", version: str = "0.1.0") -> dict[str, Any]:
    named = {"key": f"{number:016x}", "name": f"peer{number}", "addresses": ["hub:1"]}
    return named | {"version": version, "state": state, "since": 0.0, "certificate_expires": None}


def report(wanted: int = 0, **figures: float) -> tuple[Report, float]:
    return Report(figures=dict.fromkeys(FIGURES, 0.0) | figures, wanted=[wanted] * SECTORS), 1.0


def view(count: int, answered: int) -> dict[str, Any]:
    members = [member(number) for number in range(count)]
    figures = dict.fromkeys(FIGURES, 1.5) | {"position": 0.25, "overloading": 0, "late_rounds": 0}
    told = {one["key"]: report(wanted=2, **figures) for one in members[:answered]}
    return cluster_view(members, told, count - 1)
