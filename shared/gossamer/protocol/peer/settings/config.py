"""Settings of a peer and their presets.

`paper` comes first; the other presets are visible differences from it. A default either cites the
paper or says that it is a guess. Times are in rounds: the host decides how long a round lasts.
"""

from __future__ import annotations

from typing import NamedTuple

import attrs

from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.peer.settings.profile import (
    RANGES,
    RANGES_OF_FRIENDS_ALONE,
    RANGES_OFF_THE_RING,
)

# Peer sampling protocols: each is the module of that name in `gossamer.protocol.peer.sampling`.
# Their order numbers them.
SAMPLERS = ("cyclon", "newscast", "hyparview")
RENDEZVOUS = ("value", "attribute", "key")
SWITCHES = (
    *("nearest_routing", "enter_on_the_way"),
    *("cascade", "load_shifting", "join_lookup", "stabilise", "reroute"),
    *("ring_offers", "hand_on", "replay_backoff"),
)
PLACEMENTS = ("drawn", "interest")

MAX_VIEW_SIZE = 256
MAX_EVENT_MEMORY = 1 << 16
MOST_REST_LEVELS = 10
MOST_REST_ROUNDS = 1 << MOST_REST_LEVELS
# Tables of deliveries hold hops in 16 bits.
MAX_HOPS = (1 << 15) - 1
MAX_SHIFT_THRESHOLD = 1 << 18


@attrs.frozen(kw_only=True, slots=True)
class Settings:
    """What every peer of an overlay has to agree on, and the sizes of its tables.

    Attributes:
        attributes: number of attributes A in the schema, 1 to 16.
        subscriptions: subscriptions a peer may hold.
        profile_ranges: disjoint ranges per attribute that a profile tells others.
        sampler: peer sampling protocol, one of `SAMPLERS`; the paper names two (Sec. III).
        view_size: descriptors in the random view; 20 as in the Cyclon and Newscast papers.
        shuffle_length: descriptors that a shuffle exchanges; 8 as in the Cyclon paper.
        ring_links: neighbours kept on either side of the ring; the paper keeps 1 (Sec. IV-B1).
            0 makes a plain T-Man overlay, which cannot route.
        small_world_links: K_sw; 0 after the paper's Fig. 3 study (Sec. V-A).
        friend_links: K_f; log2(N) - 2 after the paper's Fig. 3 study (Sec. V-A).
        finger_levels: fingers kept on either side, each reaching twice as many peers as the one
            before (see `topology.fingers`); 0 in the paper, which has none.
        finger_exchanges: fingers that a peer asks for the next one in a round.
        guest_links: links to hosts, at the places of interests that a peer has no place at (see
            `topology.guests`); it takes twice as many guests.
        placement: "drawn" identifiers are uniform, as in the paper; by "interest" a peer has its
            place on the ring where what it subscribes to lies.
        place_spread: the part of each range, around its centre, within which such a place is drawn.
        move_rounds: rounds after a move before which a peer does not move again to what it has come
            to want (see `topology.moving`); 0 never moves, as in the paper.
        entry_links: links into the ring of a peer without subscriptions, which then does not stand
            on it (see `topology.clients`); 0 in the paper, where everybody does.
        nearest_routing: a lookup goes to the neighbour nearest to the value either way round; in
            the paper clockwise to the one closest before it.
        enter_on_the_way: peers that an event passes on its way to its rendezvous node deliver it,
            and send it down their branch of the tree, at once.
        heartbeat_rounds: rounds after which a neighbour that is not on the ring, and was not heard
            of, is asked for its profile; the paper's nodes tell it in every round (Sec. IV-C).
        failure_age: rounds without news of a neighbour after which it counts as failed; a guess.
        suspect_rounds: rounds after which a neighbour that has not answered a question counts as
            failed; 0 never, as in the paper, where its silence is noticed by age alone.
        failures_remembered: failed peers whose old descriptors are refused; a guess.
        rest_rounds: rounds between the turns of a peer around which nothing changes, at most (see
            `state.resting`); 1 as in the paper, where every round is a turn.
        rendezvous: "value" maps every value to its own rendezvous node (Vinifera), "attribute"
            all values of an attribute to one (the baseline: Ferry, eFerry, CAPS), "key" every event
            to one by its routing key (see `space.routing_key`).
        key_intervals: intervals of keys that a subscription to several attributes becomes at most.
        boxes_per_neighbour: subscriptions that one aggregated message may hold; past it the two
            whose hull adds least are merged, which costs false positives and never a match.
        routing_table_entries: entries of a content routing table; a guess by measurement.
        refresh_rounds: rounds after which subscriptions are installed again where nothing has
            changed, and ring neighbours are asked for their profiles; 1 as in the paper.
        entry_lifetime: rounds that an entry lives without being refreshed; a guess.
        cascade: forward a subscription that is new here at once instead of at the next round;
            the paper's lookups are recursive (Sec. IV-B2).
        load_shifting: move identifiers towards loaded successors (Sec. IV-B5).
        shift_threshold: beta, in events a round; the paper gives no value.
        join_lookup: a joining peer looks its place on the ring up instead of waiting for gossip.
        stabilise: greet a new successor at once instead of at the next round.
        reroute: send what an unreachable neighbour should have had through another one.
        ring_repairs: exchanges of links that a peer starts at once, at most, in a round in which
            neighbours on the ring fail; 0 none.
        ring_offers: each round a peer offers what it took in the last one to the nearest on either
            side that want it, and to its guests.
        acknowledged_hops: event copies on their way to a rendezvous node that a peer remembers
            until the next hop acknowledges them, to send them by another way; 0 none.
        hand_on: events taken as rendezvous node go on to the peer that turns out to be it.
        replay_backoff: who misses events round after round asks for fewer and fewer of them, as
            it is sent more than it can take; what it does not ask for is lost to it.
        replicas: successors of a rendezvous node that disseminate an event as well.
        replay_rounds: rounds for which events are remembered and handed to subscriptions that
            are new at a peer; 0 never.
        event_memory: event copies a peer remembers, for dropping duplicates and for replay.
        pending_publications: publications of a peer that may wait for their acknowledgement at a
            time; 0 for none acknowledged, as in the paper.
        retry_rounds: rounds without an answer after which a publication is tried again.
        held_events: event copies that a peer holds, as rendezvous node or successor of one, for
            peers that are away; 0 none.
        retention_rounds: rounds for which they are given to peers that ask for them.
        hop_limit: hops after which an event copy is dropped and counted.
        seed: of all random draws.
    """

    attributes: int = 1
    subscriptions: int = 1
    profile_ranges: int = 1
    sampler: str = "cyclon"
    view_size: int = 20
    shuffle_length: int = 8
    ring_links: int = 1
    small_world_links: int = 0
    friend_links: int = 8
    finger_levels: int = 0
    finger_exchanges: int = 2
    guest_links: int = 0
    placement: str = "drawn"
    place_spread: float = 0.0
    move_rounds: int = 0
    entry_links: int = 0
    nearest_routing: bool = False
    enter_on_the_way: bool = False
    heartbeat_rounds: int = 1
    failure_age: int = 10
    suspect_rounds: int = 0
    failures_remembered: int = 8
    rest_rounds: int = 1
    rendezvous: str = "value"
    key_intervals: int = 8
    boxes_per_neighbour: int = 32
    routing_table_entries: int = 256
    refresh_rounds: int = 1
    entry_lifetime: int = 3
    cascade: bool = True
    load_shifting: bool = True
    shift_threshold: float = 0.5
    join_lookup: bool = False
    stabilise: bool = False
    reroute: bool = False
    ring_repairs: int = 0
    ring_offers: bool = False
    hand_on: bool = False
    replay_backoff: bool = False
    acknowledged_hops: int = 0
    replicas: int = 0
    replay_rounds: int = 0
    event_memory: int = 64
    pending_publications: int = 0
    retry_rounds: int = 2
    held_events: int = 0
    retention_rounds: int = 0
    hop_limit: int = 4096
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        bounds = {
            "attributes": (1, 15 if self.rendezvous == "key" else 16),
            "subscriptions": (1, 1024),
            "profile_ranges": (1, 16),
            "view_size": (2, MAX_VIEW_SIZE),
            "ring_links": (0, 16),
            "small_world_links": (0, 48),
            "friend_links": (0, 48),
            "finger_levels": (0, 48),
            "finger_exchanges": (1, 48),
            "guest_links": (0, 16),
            "move_rounds": (0, 1 << 20),
            "key_intervals": (1, 64),
            "failure_age": (1, 1 << 20),
            "suspect_rounds": (0, 1 << 20),
            "failures_remembered": (0, 1024),
            "rest_rounds": (1, MOST_REST_ROUNDS),
            "routing_table_entries": (8, 1 << 20),
            "entry_lifetime": (1, 1 << 20),
            "ring_repairs": (0, 1 << 10),
            "acknowledged_hops": (0, 1 << 16),
            "replicas": (0, 16),
            "replay_rounds": (0, 1 << 20),
            "event_memory": (1, MAX_EVENT_MEMORY),
            "pending_publications": (0, 1 << 16),
            "retry_rounds": (1, 1 << 16),
            "held_events": (0, 1 << 20),
            "retention_rounds": (0, 1 << 30),
            "hop_limit": (1, MAX_HOPS),
            "seed": (0, (1 << 62) - 1),
        }
        for field, (low, high) in bounds.items():
            self._check_whole_number(field, low, high)
        if self.ring_links == 0:
            self._check_whole_number("finger_levels", 0, 0)
            self._check_whole_number("guest_links", 0, 0)
            self._check_whole_number("move_rounds", 0, 0)
            self._check_whole_number("rest_rounds", 1, 1)
        if self.rest_rounds > 1 and self.suspect_rounds == 0:
            expected = "1 where suspect_rounds is 0: who rests finds failures by questions alone"
            raise ConfigError("rest_rounds", self.rest_rounds, expected)
        self._check_whole_number("entry_links", 0, self.long_links)
        self._check_whole_number("shuffle_length", 1, self.view_size)
        self._check_whole_number("heartbeat_rounds", 1, self.failure_age)
        longest = min(self.failure_age, self.entry_lifetime)
        self._check_whole_number("refresh_rounds", 1, longest)
        self._check_whole_number("boxes_per_neighbour", self.coordinates + 1, 1 << 16)
        for field, choices in (
            ("sampler", SAMPLERS),
            ("rendezvous", RENDEZVOUS),
            ("placement", PLACEMENTS),
        ):
            if getattr(self, field) not in choices:
                raise ConfigError(field, getattr(self, field), "one of " + ", ".join(choices))
        for field in SWITCHES:
            if not isinstance(getattr(self, field), bool):
                raise ConfigError(field, getattr(self, field), "True or False")
        for field, most in (("place_spread", 1), ("shift_threshold", MAX_SHIFT_THRESHOLD)):
            value = getattr(self, field)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 <= value <= most:
                raise ConfigError(field, value, f"a number from 0 to {most}")

    def _check_whole_number(self, field: str, low: int, high: int) -> None:
        value = getattr(self, field)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ConfigError(field, value, f"a whole number from {low} to {high}")

    @property
    def coordinates(self) -> int:
        """C, the numbers that make up a point: attributes, and behind several the routing key.

        The key of a single attribute follows it closely enough to stand in its place.
        """
        return self.attributes + (self.routes_by_key and self.attributes > 1)

    @property
    def routes_by_key(self) -> bool:
        """Whether an event has one rendezvous node, that of its routing key."""
        return self.rendezvous == "key"

    @property
    def has_alarm(self) -> bool:
        """Whether anything follows from what a peer notes of disturbances of its ring."""
        reacts = self.ring_offers or self.hand_on or self.replay_backoff
        return reacts or self.ring_repairs > 0 or self.acknowledged_hops > 0

    @property
    def rest_levels(self) -> int:
        """How many times the interval between a peer's turns doubles at most."""
        return self.rest_rounds.bit_length() - 1

    @property
    def longest_age(self) -> int:
        """The age above which a descriptor is no sign of life: neighbours may rest so long."""
        return self.failure_age + 2 * self.rest_rounds * (self.rest_rounds > 1)

    @property
    def longest_accepted_age(self) -> int:
        """The age that others may tell of: they may rest for longer than this peer does."""
        return self.failure_age + 2 * MOST_REST_ROUNDS

    @property
    def ranked_attributes(self) -> int:
        """Coordinates whose ranges profiles tell: where keys are routed by, theirs alone."""
        return 1 if self.routes_by_key else self.attributes

    @property
    def rows(self) -> int:
        """Boxes that a peer's subscriptions may become."""
        intervals = self.key_intervals if self.coordinates > self.attributes else 1
        return self.subscriptions * intervals

    @property
    def links(self) -> int:
        """Slots of a peer's link table."""
        others = self.long_links + 3 * self.guest_links
        return self.chosen_links + others + 2 * (self.move_rounds > 0)

    @property
    def long_links(self) -> int:
        """Those of its fingers, or of a peer off the ring into it."""
        return 2 * self.finger_levels

    @property
    def chosen_links(self) -> int:
        """The first of them, for which topology management chooses among candidates."""
        return 2 * self.ring_links + self.small_world_links + self.friend_links

    @property
    def first_range(self) -> int:
        """The word of a profile from which on it tells ranges (see `profile`)."""
        if self.ring_links > 0:
            return RANGES
        return RANGES_OFF_THE_RING if self.small_world_links > 0 else RANGES_OF_FRIENDS_ALONE

    def parameters(self) -> Parameters:
        """The settings as the integers that rules read."""
        return Parameters(
            attributes=self.coordinates,
            subscriptions=self.rows,
            ranked_attributes=self.ranked_attributes,
            key=self.coordinates - 1 if self.routes_by_key else -1,
            profile_ranges=self.profile_ranges,
            first_range=self.first_range,
            ring_links=self.ring_links,
            small_world_links=self.small_world_links,
            friend_links=self.friend_links,
            chosen_links=self.chosen_links,
            finger_levels=self.finger_levels,
            finger_exchanges=self.finger_exchanges,
            guest_links=self.guest_links,
            by_interest=int(self.placement == "interest"),
            move_rounds=self.move_rounds,
            entry_links=self.entry_links,
            nearest_routing=int(self.nearest_routing),
            enter_on_the_way=int(self.enter_on_the_way),
            heartbeat_rounds=self.heartbeat_rounds,
            failure_age=self.longest_age,
            suspect_rounds=self.suspect_rounds,
            rest_levels=self.rest_levels,
            by_value=int(self.rendezvous != "attribute"),
            boxes=self.boxes_per_neighbour,
            refresh_rounds=self.refresh_rounds,
            entry_lifetime=self.entry_lifetime,
            cascade=int(self.cascade),
            load_shifting=int(self.load_shifting),
            shift_threshold=round(self.shift_threshold * LOAD_UNIT * LOAD_WINDOW),
            join_lookup=int(self.join_lookup),
            stabilise=int(self.stabilise),
            reroute=int(self.reroute),
            ring_repairs=self.ring_repairs,
            ring_offers=int(self.ring_offers),
            hand_on=int(self.hand_on),
            replay_backoff=int(self.replay_backoff),
            replicas=self.replicas,
            replay_rounds=self.replay_rounds,
            retention_rounds=self.retention_rounds,
            retry_rounds=self.retry_rounds,
            hop_limit=self.hop_limit,
        )


# Loads are kept in fixed point: events seen, each worth LOAD_UNIT, fading by one part in
# LOAD_WINDOW a round, so that a steady rate of r events a round settles at
# r * LOAD_UNIT * LOAD_WINDOW.
LOAD_UNIT = 256
LOAD_WINDOW = 32


class Parameters(NamedTuple):
    """`Settings` as integers; see there for the meaning of each."""

    attributes: int
    subscriptions: int
    ranked_attributes: int
    key: int
    profile_ranges: int
    first_range: int
    ring_links: int
    small_world_links: int
    friend_links: int
    chosen_links: int
    finger_levels: int
    finger_exchanges: int
    guest_links: int
    by_interest: int
    move_rounds: int
    entry_links: int
    nearest_routing: int
    enter_on_the_way: int
    heartbeat_rounds: int
    failure_age: int
    suspect_rounds: int
    rest_levels: int
    by_value: int
    boxes: int
    refresh_rounds: int
    entry_lifetime: int
    cascade: int
    load_shifting: int
    shift_threshold: int
    join_lookup: int
    stabilise: int
    reroute: int
    ring_repairs: int
    ring_offers: int
    hand_on: int
    replay_backoff: int
    replicas: int
    replay_rounds: int
    retention_rounds: int
    retry_rounds: int
    hop_limit: int
