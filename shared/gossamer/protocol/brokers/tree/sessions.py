"""Links: numbered frames, what is told anew when one comes up, and acknowledgements.

A session begins with `Synchronise`, which tells everything that stands on the link, so that a
neighbour that restarted, or missed something, is as if it had heard it all. Within a session,
frames are numbered: what comes twice is dropped, and what is missing is noticed.
"""

from __future__ import annotations

from gossamer.protocol.brokers.core.messages import CycleError, Hop, unknown_neighbour
from gossamer.protocol.brokers.tree import messages as m
from gossamer.protocol.brokers.tree import routing
from gossamer.protocol.brokers.tree.codec import check_content
from gossamer.protocol.brokers.tree.covering import on_acknowledge
from gossamer.protocol.brokers.tree.outbox import TreeOutbox, count
from gossamer.protocol.brokers.tree.pruning import remove
from gossamer.protocol.brokers.tree.settings import Pruning
from gossamer.protocol.brokers.tree.state import Link, State

ACKNOWLEDGE_TIMER = "acknowledge"


def on_neighbour_up(state: State, out: TreeOutbox, name: str) -> None:
    """Begin a session with a neighbour, which is new or came back."""
    link = state.links.get(name) or state.new_link(name)
    link.up = True
    _begin_session(state, out, link)


def on_neighbour_down(state: State, name: str) -> None:
    """Send nothing more to a neighbour until it is up; raises `RemoteProtocolError`."""
    _link(state, name).up = False


def on_neighbour_gone(state: State, out: TreeOutbox, name: str) -> None:
    """Withdraw whatever came from a neighbour, and forget it; raises `RemoteProtocolError`."""
    link = _link(state, name)
    link.up = False
    for entry in state.subscriptions.from_hop(link.hop):
        remove(state, out, entry, None)
    for offer in state.advertisements.from_hop(link.hop):
        routing.on_unadvertisement(state, out, link.hop, offer.id)
    for offer in list(state.advertisements):
        if link.name in offer.unsettled:
            routing.on_settled(state, out, link.name, offer.id)
    state.counters.lost += len(link.retained)
    state.forget_link(link)


def on_frame(state: State, out: TreeOutbox, name: str, frame: m.Frame) -> None:
    """Take a frame unless it came before; ask for everything anew if one before it is missing.

    Raises `RemoteProtocolError`; and, with the frame counted as taken, `CycleError` for
    advertisements that came another way, and `ContentError` or `MalformedMessageError` for filters
    and values that could not be told on.
    """
    link = _link(state, name)
    count(state.counters.received, state.counters.triggered_received, frame.message)
    if (frame.session, frame.number) <= (link.in_session, link.in_number):
        state.counters.duplicates += 1
        return
    begins = isinstance(frame.message, m.Synchronise)
    if frame.session > link.in_session and not begins:
        _notice_gap(state, out, link)
        return
    if frame.session == link.in_session and frame.number > link.in_number + 1:
        _notice_gap(state, out, link)
    link.in_session, link.in_number = frame.session, frame.number
    check_content(frame.message)
    take(state, out, link, frame.message)


def acknowledge(state: State, out: TreeOutbox) -> None:
    """Tell neighbours which of their publications need not be retained any more."""
    for link in state.links_in_order():
        if link.unacknowledged:
            _acknowledge(out, link)


def _link(state: State, name: str) -> Link:
    link = state.links.get(name)
    if link is None:
        raise unknown_neighbour(name)
    return link


def _begin_session(state: State, out: TreeOutbox, link: Link) -> None:
    """Tell everything that stands, then the publications that are not acknowledged; their
    advertisements stand until those have passed."""
    link.out_session += 1
    link.out_number = 0
    link.unacknowledged = 0
    standing = {offer.id: offer.filter for offer in state.advertisements if offer.hop != link.hop}
    gone = {
        one.publication.advertisement: one.advertised
        for one in link.retained
        if one.publication.advertisement not in standing
    }
    advertisements = (m.Advertisement(id_, told) for id_, told in (standing | gone).items())
    subscriptions = (m.Subscription(id_, link.sent.filter_of(id_)) for id_ in link.sent)
    out.send_on(link, m.Synchronise(tuple(advertisements), tuple(subscriptions)))
    out.send_again(link)
    for id_ in gone:
        out.send_on(link, m.Unadvertisement(id_))


def _notice_gap(state: State, out: TreeOutbox, link: Link) -> None:
    state.counters.gaps += 1
    out.send_on(link, m.SynchroniseRequest())


def take(state: State, out: TreeOutbox, link: Link, message: m.BetweenBrokers) -> None:
    """Take what came in a frame."""
    match message:
        case m.Publication():
            routing.on_publication(state, out, link.hop, message)
            _owe_acknowledgement(state, out, link)
        case m.Packed(messages):
            for inner in messages:
                take(state, out, link, inner)
        case m.Subscription():
            routing.on_subscription(state, out, link.hop, message)
            if message.triggered and state.settings.rules.pruning is Pruning.PACED:
                _acknowledge(out, link)
        case m.Unsubscription():
            routing.on_unsubscription(state, out, link.hop, message)
        case m.Advertisement():
            routing.on_advertisement(state, out, link.hop, message)
        case m.Unadvertisement(id_):
            routing.on_unadvertisement(state, out, link.hop, id_)
        case m.Settled(id_):
            routing.on_settled(state, out, link.name, id_)
        case m.Synchronise():
            _ask_whether_settled(state, out, link)
            _synchronise(state, out, link.hop, message)
        case m.SynchroniseRequest():
            _begin_session(state, out, link)
        case m.Acknowledge():
            _forget_acknowledged(link, message)
            on_acknowledge(state, out, link, message)


def _ask_whether_settled(state: State, out: TreeOutbox, link: Link) -> None:
    """Tell a neighbour anew what it may have answered in the session before."""
    for offer in state.advertisements:
        if link.name in offer.unsettled:
            out.send_on(link, m.Advertisement(offer.id, offer.filter))


def _synchronise(state: State, out: TreeOutbox, hop: Hop, told: m.Synchronise) -> None:
    """Take over what a neighbour tells; first what is new, then away with what is no more."""
    cycle = None
    for advertisement in told.advertisements:
        try:
            routing.on_advertisement(state, out, hop, advertisement)
        except CycleError as error:
            cycle = error
    for subscription in told.subscriptions:
        routing.on_subscription(state, out, hop, subscription)
    wanted = {subscription.id for subscription in told.subscriptions}
    for entry in state.subscriptions.from_hop(hop):
        if entry.id not in wanted and not entry.held:
            remove(state, out, entry, None)
    offered = {advertisement.id for advertisement in told.advertisements}
    for offer in state.advertisements.from_hop(hop):
        if offer.id not in offered:
            routing.on_unadvertisement(state, out, hop, offer.id)
    if cycle is not None:
        raise cycle


def _owe_acknowledgement(state: State, out: TreeOutbox, link: Link) -> None:
    settings = state.settings
    if not settings.retained_publications:
        return
    link.unacknowledged += 1
    if link.unacknowledged >= settings.acknowledge_every:
        _acknowledge(out, link)
    else:
        out.set_timer(ACKNOWLEDGE_TIMER, settings.acknowledge_interval)


def _acknowledge(out: TreeOutbox, link: Link) -> None:
    link.unacknowledged = 0
    out.send_on(link, m.Acknowledge(link.in_session, link.in_number))


def _forget_acknowledged(link: Link, message: m.Acknowledge) -> None:
    retained = link.retained
    while retained and retained[0].session == message.session:
        if retained[0].number > message.number:
            break
        retained.popleft()
