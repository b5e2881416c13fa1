"""What a broker of a general graph wants to happen, for its host to carry out in order."""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.brokers.core.effects import Moved, SetTimer
from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.brokers.graph.memory.messages import BetweenBrokers, Document, Message
from gossamer.protocol.brokers.graph.memory.problem import Problem
from gossamer.protocol.kernel.errors import ProtocolError


@frozen
class Send:
    """Send a message to a neighbour; links are first in, first out."""

    neighbour: str
    message: BetweenBrokers


@frozen
class Deliver:
    """Hand a document to a client, once for all its filters that match."""

    client: str
    publication: Document
    labels: tuple[str, ...]


@frozen
class MakePlan:
    """Let `planning.solve` make trees, and hand `Planned` with this number back when it has.

    That takes long, and so is no part of a step.
    """

    number: int
    problem: Problem


@frozen
class Refuse:
    """Tell whoever caused it why a message was not carried out; None is the host."""

    hop: Hop | None
    error: ProtocolError
    message: Message


Effect = Send | Deliver | Moved | SetTimer | MakePlan | Refuse
